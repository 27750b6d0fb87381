"""Arms of a trial side by side, or in one list, from what services recorded of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.completion.engine.folding import place_among
from telic.errors import InputError
from telic.evaluate import (
    Interleaved,
    Value,
    ips,
    mean_weight,
    preference,
    snips,
    wilson_interval,
)
from telic.evaluate.paired import difference_interval
from telic.report.table import Table, finite

MEASURES = ("acceptance", "MRR", "keystrokes saved")
CERTAIN = 0.999
"""Level of the intervals of weights: of a thousand right trials about one is called wrong."""


@dataclass(frozen=True)
class ArmValue:
    """What an arm is worth by one measure: had all users been sent to it."""

    measure: str
    arm: str
    compositions: int
    users: int
    mean: float
    """Of its own compositions: it says as much of who was sent to it, and when, as of the arm."""
    ips: Value
    snips: Value
    difference: Value | None
    """Of the self-normalised estimate from the first arm's; None for the first."""


@dataclass(frozen=True)
class TrialResult:
    """What `judge_trial` found."""

    compositions: int
    users: int
    observed: dict[str, Value]
    """Measure → what was observed in all, which is the value of the policy that drew the arms."""
    values: list[ArmValue]
    weights: dict[str, Value]
    """Arm → mean weight, which is one where the propensities are right: see `mean_weight`. Its
    interval is at the level `CERTAIN`."""

    @property
    def wrong(self) -> list[str]:
        """Return the arms whose propensities cannot be right; of one user nobody can tell."""
        return [arm for arm, each in self.weights.items() if each.low > 1 or each.high < 1]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each measure and arm, as ``telic completion trial --json`` shows it."""
        return [
            {"measure": each.measure, "arm": each.arm}
            | {"compositions": each.compositions, "users": each.users, "mean": each.mean}
            | {
                f"{name}{end}": finite(number)
                for name in ("ips", "snips", "difference")
                for end, number in zip(
                    ("", "_low", "_high"), _ends(getattr(each, name)), strict=True
                )
            }
            for each in self.values
        ]

    def table(self) -> Table:
        """Return the table for people."""
        spread = "{:.4f} [{:.4f}, {:.4f}]"
        columns = {"": "", "arm": "", "compositions": "", "users": "", "own mean": ".4f"}
        columns |= {"IPS": spread, "SNIPS": spread, "difference": "{:+.4f} [{:+.4f}, {:+.4f}]"}
        rows = [
            [each.measure, each.arm, each.compositions, each.users, each.mean]
            + [
                [*map(finite, _ends(value))] if value else None
                for value in (each.ips, each.snips, each.difference)
            ]
            for each in self.values
        ]
        title = f"What each arm is worth, on {self.compositions:,} compositions"
        note = "95 % intervals, with users as the unit. IPS and SNIPS say what the arm would be "
        note += "worth if all users were sent to it; its own mean also tells who was, and when."
        return Table(title, columns, rows, note)


def judge_trial(compositions: pa.Table, *, first: str | None = None) -> TrialResult:
    """Estimate what each arm of a trial is worth by the probabilities with which users came to it.

    Parameters
    ----------
    compositions : pyarrow.Table
        What `telic.data.ubi.read_ubi` gives of services that recorded as arms; several arms' tables
        one after the other.
    first : str, optional
        The arm that the others are compared with; the first by name.

    Raises
    ------
    InputError
        If no arms were recorded, a propensity is none, or there is only one arm.
    """
    table = compositions.slice(0, 0)
    if "arm" in compositions.column_names:
        table = compositions.filter(compositions["arm"].is_valid()).combine_chunks()
    if not len(table):
        raise InputError("no arm was recorded. Serve each arm with --arm NAME --propensity SHARE.")
    arm = np.array(table["arm"].to_pylist(), object)
    arms = sorted(set(arm))
    if first is not None and first not in arms:
        raise InputError(f"there is no arm {first!r}, only {', '.join(map(repr, arms))}.")
    if len(arms) < 2:
        raise InputError(f"only the arm {arms[0]!r} was recorded: nothing to compare it with.")
    arms.sort(key=lambda name: name != first)
    propensity = table["propensity"].to_numpy().astype(float)
    user = np.array(table["user"].to_pylist(), object)
    values, observed = [], {}
    for measure, reward in zip(MEASURES, _rewards(table), strict=True):
        everybody = ips(reward, propensity, propensity, user)
        observed[measure] = _with_width(everybody, everybody.groups)
        base: Value | None = None
        for name in arms:
            own = arm == name
            found = snips(reward, propensity, own, user)
            found = _with_width(found, found.groups)
            values.append(
                ArmValue(
                    measure,
                    name,
                    int(own.sum()),
                    len(set(user[own])),
                    float(reward[own].mean()),
                    _with_width(ips(reward, propensity, own, user), found.groups),
                    found,
                    _difference(found, base) if base else None,
                )
            )
            base = base or found
    weights = {name: mean_weight(propensity, arm == name, user, level=CERTAIN) for name in arms}
    return TrialResult(len(table), len(set(user)), observed, values, weights)


def _with_width(found: Value, users: int) -> Value:
    """Return an estimate; where no user moves it, with Wilson's interval for so many users.

    Their spread, which is none, does not say how far users differ: a few are alike by chance.
    Rewards lie between 0 and 1, where none vary more than those that are one or the other.
    """
    if users < 2 or _spreads(found):
        return found
    low, high = wilson_interval(min(max(found.value, 0.0), 1.0), users)
    return replace(found, low=low, high=high)


def _spreads(found: Value) -> bool:
    """Whether users move an estimate, by more than rounding."""
    return bool((abs(found.pull) > 1e-12).any())


def _difference(found: Value, base: Value) -> Value:
    """Return how far an arm is above another; if no user moves one, from both intervals.

    That is Newcombe's tenth method (Statistics in Medicine 17, 1998, 873).
    """
    difference = found.less(base)
    if _spreads(found) and _spreads(base):
        return difference
    below = np.hypot(found.value - found.low, base.high - base.value)
    above = np.hypot(found.high - found.value, base.value - base.low)
    return replace(difference, low=difference.value - below, high=difference.value + above)


@dataclass(frozen=True)
class InterleavingResult:
    """What `judge_interleaving` found."""

    compositions: int
    users: int
    static: int
    """Compositions in which a pick of the static order was taken from the list."""
    model: int
    """Those in which one of the model's was."""
    preference: Value
    """Mean, over compositions, of 1 for the model's and −1 for the static order's."""

    def facts(self) -> dict[str, Any]:
        """Return what ``telic completion trial --json`` shows."""
        counts = {
            name: getattr(self, name) for name in ("compositions", "users", "static", "model")
        }
        names = (f"preference{end}" for end in ("", "_low", "_high"))
        return counts | dict(zip(names, map(finite, _ends(self.preference)), strict=True))

    def table(self) -> Table:
        """Return the table for people."""
        spread = "{:+.4f} [{:+.4f}, {:+.4f}]"
        columns = {"taken from the list": ",", "of the static order": ",", "of the model": ","}
        columns |= {"preference for the model": spread}
        taken = self.static + self.model
        row = [taken, self.static, self.model, [*_ends(self.preference)]]
        title = f"Whose suggestions people took, in {self.compositions:,} interleaved compositions"
        note = "A 95 % interval, with users as the unit: where both orders are equally good, it "
        note += "has 0 in it."
        return Table(title, columns, [row], note)


def judge_interleaving(compositions: pa.Table) -> InterleavingResult:
    """Say whose suggestions people took where lists were drawn from two orders.

    Parameters
    ----------
    compositions : pyarrow.Table
        What `telic.data.ubi.read_ubi` gives of a service that recorded with ``interleave``.

    Raises
    ------
    InputError
        If no list was drawn from two orders.
    """
    table = compositions.slice(0, 0)
    if "teams" in compositions.column_names:
        table = compositions.filter(compositions["teams"].is_valid())
    if not len(table):
        raise InputError("no list was interleaved. Serve with --record FOLDER --interleave SHARE.")
    kind = table["teams"].type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (text and pc.all(pc.match_substring_regex(table["teams"], "^[01]*$")).as_py()):
        raise InputError("teams: expected 0 or 1 for each suggestion, as a service records them.")
    credit = []
    for place, teams in zip(table["selected"].to_pylist(), table["teams"].to_pylist(), strict=True):
        # By place: who submits what was taken may spell it otherwise. What is beyond the teams
        # matches later in a phrase, and is nobody's pick.
        drawn = Interleaved([*range(1, len(teams) + 1)], [int(team) for team in teams], 1.0)
        credit.append(preference(drawn, place))
    each, user = np.array(credit, float), np.array(table["user"].to_pylist(), object)
    found, users = ips(each, np.ones(len(each)), np.ones(len(each)), user), len(set(user))
    if users > 1 and not np.ptp(each):
        # Where all are alike no spread says how far users differ; a few are so by chance.
        low, high = difference_interval(np.full(users, each[0]))
        found = replace(found, low=low, high=high)
    return InterleavingResult(len(each), users, int((each < 0).sum()), int((each > 0).sum()), found)


def _rewards(table: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by composition whether it was accepted, the reciprocal place, and what was saved."""
    accepted = table["selected"].is_valid().to_numpy().astype(float)
    reciprocal, saved = np.zeros(len(table)), np.zeros(len(table))
    rows = zip(table["query"].to_pylist(), table["keystrokes"].to_pylist(), strict=True)
    for i, (query, keystrokes) in enumerate(rows):
        last = keystrokes[-1]
        shown = last["suggestions"] or []
        if (place := place_among(query, shown)) >= 0:
            reciprocal[i] = 1 / (place + 1)
        if accepted[i]:
            saved[i] = max(len(query) - len(last["prefix"]), 0) / len(query)
    return accepted, reciprocal, saved


def _ends(value: Value | None) -> tuple[float, float, float]:
    return (value.value, value.low, value.high) if value else (np.nan, np.nan, np.nan)
