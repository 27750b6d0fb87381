"""What each signal is worth on a query log, as tables: the page that a team gets for its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.completion.signals.evaluation import ALL, Tested
from telic.completion.signals.groups import FEEDBACK, PAIRS
from telic.completion.signals.log_split import CHOSEN, LEARNED, LONGEST, TESTED, Searches
from telic.completion.signals.weights import SHOWN, SignalWeights
from telic.report import Report, Table

EXPLAINED = (
    f"The measures are mean reciprocal rank in a list of {SHOWN} (MRR) and success at k (S@k), on "
    "later submissions of users from whom nothing was learned. “static” is the most popular "
    "completion. Each of the next rows adds one group of signals; the last row has all groups that "
    "helped on the other half of the users (whose gate is on). Differences from static are in "
    "points: means over users of each user's own difference, with 95 % intervals. They are not the "
    "differences of the figures beside them, which count each prefix alike."
)
SYNTHETIC = (
    " The prefixes are synthetic: each query is taken to have been typed from left to right, "
    f"up to {LONGEST} characters. arXiv 2510.01574 studies the bias that this brings."
)
TYPED = (
    " The prefixes are those that people typed. Feedback is on the lists that they were shown, "
    "which the logged system made; everything else is ranked as it would be served."
)
MEASURES = {"MRR": "mrr", "S@1": "sr@1", "S@3": "sr@3", "S@10": "sr@10"}
DIFFERENCE = "100 {:+.2f} ({:+.2f} to {:+.2f})"


@dataclass(frozen=True)
class SignalFindings:
    """What was found on one log; `facts`, rows and gates are what JSON takes."""

    facts: dict[str, Any]
    rows: list[dict[str, Any]]
    """See `Tested.rows`."""
    effort: list[dict[str, Any]]
    """See `Tested.effort`."""
    controls: list[dict[str, Any]]
    """See `telic.completion.signals.controls`."""
    weights: list[dict[str, Any]]
    """A row for each group: its gate, penalty and weights."""

    @classmethod
    def of(
        cls,
        searches: Searches,
        models: Mapping[str, SignalWeights],
        found: Tested,
        controlled: Sequence[dict[str, Any]],
    ) -> "SignalFindings":
        """Gather what the tables show."""
        whole = models[ALL]
        return cls(
            facts_of(searches, found) | fit_facts(whole),
            found.rows(),
            found.effort(),
            list(controlled),
            weight_rows(whole, searches.groups),
        )

    def row(self, model: str, part: str = "all") -> dict[str, Any]:
        """Return the row of a model and slice."""
        return next(row for row in self.rows if (row["model"], row["slice"]) == (model, part))

    def tables(self) -> list[Table]:
        """Return the tables of the page, the most important first."""
        shown = [self._worth(), self._by_length(), self._effort(), self._by_seen()]
        return [*shown, self._controls(), self._weights(), facts_table(self.facts)]

    def sentence(self, people: str = "users") -> str:
        """Say in a sentence or two what each signal is worth, and on whom it was measured.

        `people` says what the log's users are.
        """
        few = [
            f"{row['model'].removeprefix('+ ')} {_said(row)}"
            for row in self._of_slice("1–3 characters")
            if row["model"].startswith("+")
        ]
        whole, start = self.row(ALL), self.row(ALL, "1–3 characters")
        facts = self.facts
        whom, others = "that name nobody", ""
        if facts["users"]:
            whom, others = f"of {facts['users tested']} {people}", ", and of other people"
        early = ""
        if start["n"]:  # a log may begin at later characters
            early = f" and {_said(start)} at one to three characters. At one to three characters, "
            early += f"each group of signals alone adds: {'; '.join(few)}"
        return (
            f"The test is on {facts['submissions tested']} submissions {whom}; they are later than "
            f"those learned from{others}. Popularity alone has an MRR of "
            f"{100 * self.row('static')['mrr']:.2f} points over all prefixes; no ranking can have "
            f"more than {100 * whole['ceiling']:.1f}. The signals that help add {_said(whole)} "
            f"points over all prefixes{early}."
        )

    def page(self, title: str) -> Report:
        """Return the page."""
        report = Report(title, lead=self.sentence())
        report.text(EXPLAINED + (TYPED if self.facts.get("lists shown") else SYNTHETIC))
        for table in self.tables():
            report.table(table)
        return report

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "SignalFindings":
        """Read back what `as_json` wrote."""
        names = ("facts", "results", "effort", "controls", "signals")
        return cls(*(stored[name] for name in names))

    def as_json(self) -> dict[str, Any]:
        """Return everything, as JSON takes it."""
        return {
            "facts": self.facts,
            "results": self.rows,
            "effort": self.effort,
            "controls": self.controls,
            "signals": self.weights,
        }

    def _of_slice(self, part: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["slice"] == part and row["n"]]

    def _worth(self) -> Table:
        columns = {"signals": ""} | dict.fromkeys(MEASURES, "100 .2f")
        rows = [
            [row["model"], *(row[key] for key in MEASURES.values()), _interval(row)]
            for row in self._of_slice("all")
        ]
        ceiling = self.row("static")
        note = (
            f"At {100 * ceiling['ceiling']:.1f} % of the prefixes the query was known by then, or "
            "was one of the user's own: no model can be right more often (the ceiling). At "
            f"{100 * ceiling['reached']:.1f} % it was among the candidates that are ranked. All "
            "other prefixes count 0."
        )
        return Table(
            "What each signal is worth", columns | {"MRR − static": DIFFERENCE}, rows, note
        )

    def _by_length(self) -> Table:
        bins = [part for part in ("1–3", "4–6", "7+") if self._of_slice(f"{part} characters")]
        columns = {"signals": ""}
        for part in bins:
            columns |= {f"{part}: MRR": "100 .2f", f"{part}: − static": DIFFERENCE}
        rows = []
        for model in dict.fromkeys(row["model"] for row in self.rows):
            own = [self.row(model, f"{part} characters") for part in bins]
            rows.append([model, *(v for row in own for v in (row["mrr"], _interval(row)))])
        return Table("By the number of characters typed", columns, rows)

    def _effort(self) -> Table:
        rows = [
            [row["model"], row["to top 5"], row["saved"], _interval(row)] for row in self.effort
        ]
        return Table(
            "Keystrokes and characters",
            {
                "signals": "",
                "keystrokes until among the first five": ".2f",
                "characters saved": ".1%",
                "saved − static, points": DIFFERENCE,
            },
            rows,
            "Figures are by submission. “Saved” counts the characters after the first at which "
            f"the query is in the list of {SHOWN}; a query that never comes up costs all of its "
            "characters and saves none.",
        )

    def _by_seen(self) -> Table:
        rows = []
        for part in dict.fromkeys(row["slice"] for row in self.rows):
            if "seen" in part and self._of_slice(part):
                static, whole = self.row("static", part), self.row(ALL, part)
                rows.append([part, static["n"], static["ceiling"], static["mrr"], _interval(whole)])
        return Table(
            "By how often the user had searched before, and how often anybody had searched for the "
            "query",
            {
                "": "",
                "prefixes": ",",
                "ceiling": ".1%",
                "MRR static": "100 .2f",
                f"{ALL} − static": DIFFERENCE,
            },
            rows,
        )

    def _controls(self) -> Table:
        what = {
            ("session", False): "session, as it is",
            ("session", True): "control: session of somebody else",
            ("pairs", False): "pairs, as they are",
            ("pairs", True): "control: pairs with the session of somebody else",
            ("time", False): "time, as it is",
            ("time", True): "control: times exchanged",
            ("apps", False): "apps, as they are",
            ("apps", True): "control: apps of somebody else",
        }
        rows = [
            [what[row["group"], row["exchanged"]], row["n"], _interval(row)]
            for row in self.controls
        ]
        return Table(
            "Controls: what the measure itself makes up",
            {"group, beside learned popularity": "", "prefixes": ",", "MRR − without": DIFFERENCE},
            rows,
            "Each control is fitted anew, without a gate. In it the group cannot tell anything, "
            "so its interval should reach to zero or below.",
        )

    def _weights(self) -> Table:
        return Table(
            "What was learned",
            {"group": "", "gate": "", "penalty": "g", "weights": ""},
            [[row["group"], row["gate"], row["penalty"], row["weights"]] for row in self.weights],
            "A weight is what a rise of its feature by one adds to the logarithm of the odds.",
        )


def _interval(row: Mapping[str, Any]) -> list[float] | float | None:
    if row["difference"] is None:
        return None
    return [row["difference"], row["low"], row["high"]]


def _said(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return f"{100 * row['difference']:+.2f}"
    low, high = 100 * row["low"], 100 * row["high"]
    return f"{100 * row['difference']:+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−")


def facts_of(searches: Searches, found: Tested) -> dict[str, Any]:
    """Say on what it was measured, as JSON takes it."""
    part = searches.part
    days = (int(searches.at[-1]) - int(searches.at[0])) / (24 * 3600 * 1e6)
    return {
        "submissions": len(searches),
        "users": searches.users,
        "phrases": len(searches.index),
        "days": round(days, 1),
        **({"lists shown": True} if FEEDBACK in searches.groups else {}),
        "share of submissions with one before them in the session": float(
            (searches.before >= 0).mean()
        ),
        "submissions to learn from": int((part == LEARNED).sum()),
        "submissions to choose by": int((part == CHOSEN).sum()),
        "submissions to test on": int((part == TESTED).sum()),
        "submissions tested": len(np.unique(found.event)),
        "users tested": len(np.unique(found.unit)),
        "prefixes tested": len(found.event),
    }


def fit_facts(fitted: SignalWeights) -> dict[str, Any]:
    """Say how the fit went, as JSON takes it."""
    if not fitted.penalties:
        return {"fit": "the static order: no group helped"}
    facts: dict[str, Any] = {}
    if fitted.choices:
        facts = {
            "compositions fitted": fitted.choices,
            "objective": fitted.objective,
            "objective of the static order": fitted.static,
            "at most above the optimum": fitted.gap,
        }
    if PAIRS in fitted.penalties:
        facts["prefixes that weights of pairs were learned from"] = fitted.pair_choices
        facts["their objective at most above its optimum"] = fitted.pair_gap
    return facts


def weight_rows(fitted: SignalWeights, groups: Sequence[str]) -> list[dict[str, Any]]:
    """Return, for each group, its gate, penalty and weights."""
    rows = []
    for group in groups:
        on = group in fitted.penalties
        rows.append(
            {
                "group": group,
                "gate": fitted.gates.get(group, "not asked for"),
                "penalty": fitted.penalties.get(group),
                "weights": fitted.of_group(group, 2).replace("-", "−") if on else None,
            }
        )
    return rows


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Return the facts as a table."""
    return Table(
        "What it was measured on", {"": "", " ": ".6g"}, [[k, v] for k, v in facts.items()]
    )
