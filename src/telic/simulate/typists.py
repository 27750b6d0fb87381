"""Simulated people at a search box that shows the most popular completions."""

import dataclasses
import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from scipy.special import expit, logit

from telic.completion import PrefixIndex, fold
from telic.data.contracts import COMPOSITIONS, KEYSTROKE, SIMULATED, TIMESTAMP
from telic.errors import InputError, expect_whole
from telic.simulate.catalogue import Catalogue
from telic.simulate.intents import REFINEMENTS, Intents, draw_intents, query_text
from telic.simulate.typist_parameters import SETTINGS, TypistParameters
from telic.simulate.typos_and_backspaces import LONGEST_PHRASE, draw_plans

SIBLINGS = 10
"""How many popular phrases of the same first word an edited query may turn into."""
AT_ONCE = 1 << 18
"""Compositions whose rows are made at a time."""
BEGIN = np.datetime64("2026-01-01", "us")

Round = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The compositions that press a key, the prefix that each reaches, and its dwell in seconds."""


def simulate_typists(
    catalogue: Catalogue,
    *,
    users: int = 200,
    compositions: int = 150,
    setting: str | TypistParameters = "calibrated",
    attention: float | None = None,
    candidates: int = 10,
    seed: int = 0,
    causes: Callable[[Intents], Intents] | None = None,
    begin: np.datetime64 = BEGIN,
) -> pa.Table:
    """Make a composition log by simulated people who search a catalogue.

    At each keystroke the box shows the `candidates` heaviest phrases that begin with the prefix
    (both folded). Then the user may look at the list, read it from the top down to some depth, and
    choose the wanted query if it was read; reading lengthens the dwell on that list. Whoever never
    chooses types the query in full. The prefixes are folded text (people type "sao paulo"); the
    query and the suggestions are spelled as in the catalogue.

    Parameters
    ----------
    catalogue : Catalogue
        What people may want.
    users, compositions : int
        How many, and how many for each.
    setting : {"calibrated", "inattentive", "readers"} or TypistParameters
        See `SETTINGS`; give parameters of your own to sweep what is not published.
    attention : float in [0, 1], optional
        In ``calibrated``: the probability that a typical user looks at a list in the middle of a
        word, instead of the setting's own; 0: nobody ever looks, 1: everyone looks at every list.
        Equal seeds give the same intents and typing speeds at every attention.
    candidates : int
        Length of the list shown.
    seed : int
        Equal seeds give equal logs.
    causes : callable, optional
        Changes what is wanted before anything is typed (see `telic.simulate.simulate_phones`).
    begin : numpy.datetime64
        When the log begins, UTC.

    Returns
    -------
    pyarrow.Table
        One row per composition, by user and time; keeps `telic.data.contracts.COMPOSITIONS`
        without ``installed`` and ``opened``. The schema's metadata say ``telic.simulated`` and
        hold setting, seed and parameters as JSON under ``telic.typists``.

    Raises
    ------
    InputError
        If a parameter is out of range or a phrase is too long to be typed.

    Examples
    --------
    >>> catalogue = Catalogue(["tea", "tea kettle", "coffee"], np.array([5.0, 1.0, 3.0]))
    >>> log = simulate_typists(catalogue, users=2, compositions=3)
    >>> log.num_rows, log.column_names[:3]
    (6, ['user', 'composition', 'query'])
    """
    p = _parameters(setting, attention)
    expect_whole(1, users=users, compositions=compositions, candidates=candidates)
    lists = _StaticLists(catalogue, candidates)
    lengths = [len(text) for text in lists.folded]
    for phrase, length in zip(catalogue.phrases, lengths, strict=True):
        if length > LONGEST_PHRASE:
            raise InputError(
                f"catalogue: {phrase[:40]!r} has {length} characters to type, expected at most "
                f"{LONGEST_PHRASE}. Drop such phrases."
            )
    rngs = np.random.default_rng(seed).spawn(3)
    # A gap that no order of dwells can overrun: the twin of a log keeps its order in time.
    longest_plan = 2 * (max(lengths) + max(map(len, REFINEMENTS))) + 8
    intents = draw_intents(
        catalogue,
        siblings=lists.siblings,
        users=users,
        compositions=compositions,
        min_gap=longest_plan * p.max_dwell,
        parameters=p,
        rng=rngs[0],
    )
    if causes is not None:
        intents = causes(intents)
    plans = draw_plans(intents, lists.folded, parameters=p, rng=rngs[1])
    rounds, prefixes, shown, selected = _type(intents, plans, lists, p, rngs[2])
    table = _assemble(catalogue, intents, rounds, prefixes, shown, selected, begin)
    description = {
        "setting": setting if isinstance(setting, str) else "custom",
        "seed": seed,
        "candidates": candidates,
        "parameters": dataclasses.asdict(p),
    }
    return table.replace_schema_metadata(
        {SIMULATED: b"true", b"telic.typists": json.dumps(description).encode()}
    )


def _parameters(setting: str | TypistParameters, attention: float | None) -> TypistParameters:
    if isinstance(setting, TypistParameters):
        parameters = setting
    elif setting in SETTINGS:
        parameters = SETTINGS[setting]
    else:
        raise InputError(f"setting is {setting!r}, expected one of {', '.join(SETTINGS)}.")
    if attention is None:
        return parameters
    if setting != "calibrated":
        raise InputError("attention can be set only in 'calibrated'; the setting given fixes it.")
    return dataclasses.replace(parameters, attention=attention)


def _type(
    intents: Intents,
    plans: list[list[str]],
    lists: "_StaticLists",
    p: TypistParameters,
    rng: np.random.Generator,
) -> tuple[list[Round], list[str], np.ndarray, np.ndarray]:
    """Let everyone type; round k is the k-th keystroke of every composition still under way."""
    users: int = intents.wanted.shape[0]
    n = intents.wanted.size
    wanted = intents.wanted.ravel()
    of_user = np.repeat(np.arange(users), intents.wanted.shape[1])
    number: dict[str, int] = {}
    plan = np.array([number.setdefault(text, len(number)) for path in plans for text in path])
    plan_length = np.array([len(path) for path in plans])
    plan_start = np.cumsum(plan_length) - plan_length
    prefixes = list(number)
    length = np.array([len(text) for text in prefixes])
    word_end = np.array([text.endswith((" ", ",")) for text in prefixes])
    shown = np.full((len(prefixes), lists.candidates), -1, dtype=np.int32)
    looked_up = np.zeros(len(prefixes), dtype=bool)

    slow = rng.random(users) < p.slow_share
    key_time = np.array(p.key_seconds)[slow.astype(int)]
    key_time *= np.exp(p.key_spread_users * rng.standard_normal(users))
    with np.errstate(divide="ignore"):
        interest = logit(p.attention) + p.attention_spread * rng.standard_normal(users)
    depth_odds = np.cumsum(p.depth) / np.sum(p.depth)

    selected = np.zeros(n, dtype=np.int16)
    active = np.arange(n)
    rounds: list[Round] = []
    while active.size:
        k, user = len(rounds), of_user[active]
        # Draws for all, not only the active: attention then changes nobody's other draws.
        z, long = rng.standard_normal(n)[active], rng.exponential(size=n)[active]
        pause, look, line, choice = rng.random((4, n))[:, active]

        prefix = plan[plan_start[active] + k]
        new = np.unique(prefix[~looked_up[prefix]])
        for i in new:
            top = lists.top(prefixes[i], lists.candidates)
            shown[i, : len(top)] = top
        looked_up[new] = True
        is_wanted = shown[prefix] == wanted[active, None]
        position = np.where(is_wanted.any(1), is_wanted.argmax(1) + 1, 0)
        n_shown = (shown[prefix] >= 0).sum(1)

        hesitates = pause < p.hesitation_share
        inclination = (
            interest[user]
            + p.look_word_end * word_end[prefix]
            + p.look_hesitation * hesitates
            + p.look_length * (length[prefix] - p.middle_length)
        )
        depth = np.searchsorted(depth_odds, line, side="right")
        depth = np.where(look < expit(inclination), np.minimum(depth, n_shown), 0)
        read = (position > 0) & (position <= depth)
        chosen = read & (choice < p.accept)
        dwell = key_time[user] * np.exp(p.key_spread * z)
        dwell *= np.where(word_end[prefix], p.word_pause, 1.0)
        dwell += hesitates * p.hesitation_seconds * long
        dwell += np.where(read, position, depth) * p.read_seconds + chosen * p.choose_seconds
        rounds.append((active, prefix, np.clip(dwell, 0.02, p.max_dwell)))

        typed = ~chosen & (k + 1 == plan_length[active])
        selected[active[chosen]] = position[chosen]
        if p.blind_length is not None:
            selected[active[typed]] = position[typed]
        active = active[~(chosen | typed)]
    return rounds, prefixes, shown, selected


def _assemble(
    catalogue: Catalogue,
    intents: Intents,
    rounds: list[Round],
    prefixes: list[str],
    shown: np.ndarray,
    selected: np.ndarray,
    log_begin: np.datetime64,
) -> pa.Table:
    """Turn arrays, one entry per keystroke, into the nested table."""
    of, prefix, dwell = (np.concatenate(part) for part in zip(*rounds, strict=True))
    order = np.argsort(of, kind="stable")  # rounds come in order of time
    of, prefix = of[order], prefix[order]
    dwell = np.round(dwell[order] * 1e6).astype(np.int64)
    users, compositions = intents.wanted.shape
    ends = np.cumsum(np.bincount(of, minlength=users * compositions))
    begin = log_begin.astype("datetime64[us]").astype(np.int64) + np.round(
        intents.start.ravel() * 1e6
    ).astype(np.int64)
    clock = np.concatenate([[0], np.cumsum(dwell)])
    first = np.concatenate([[0], ends[:-1]])
    at = clock[:-1] - clock[first][of] + begin[of]
    submitted = clock[ends] - clock[first] + begin

    names = [f"u{u:0{len(str(users - 1))}d}" for u in range(users)]
    digits = len(str(compositions - 1))
    ids = [f"{name}-{j:0{digits}d}" for name in names for j in range(compositions)]
    user, wanted = np.repeat(names, compositions), intents.wanted.ravel()
    phrases, texts = pa.array(catalogue.phrases), pa.array(prefixes)

    def rows(own: slice) -> pa.Table:
        """Make the table's rows of some compositions."""
        typed = slice(first[own.start], ends[own.stop - 1])
        lists = shown[prefix[typed]]
        list_ends = np.concatenate([[0], np.cumsum((lists >= 0).sum(1))]).astype(np.int32)
        keystrokes = pa.StructArray.from_arrays(
            [
                pa.array(at[typed], TIMESTAMP),
                texts.take(pa.array(prefix[typed])),
                pa.ListArray.from_arrays(
                    pa.array(list_ends), phrases.take(pa.array(lists[lists >= 0]))
                ),
            ],
            fields=list(KEYSTROKE),
        )
        typed_ends = np.concatenate([[0], ends[own] - typed.start]).astype(np.int32)
        columns = {
            "user": user[own],
            "composition": ids[own],
            "query": [query_text(q, catalogue.phrases) for q in wanted[own].tolist()],
            "submitted_at": pa.array(submitted[own], TIMESTAMP),
            "selected": pa.array(selected[own], mask=selected[own] == 0),
            "keystrokes": pa.ListArray.from_arrays(pa.array(typed_ends), keystrokes),
        }
        schema = pa.schema([field for field in COMPOSITIONS if field.name in columns])
        return pa.table(columns, schema=schema)

    size = users * compositions
    # The texts of one array may take no more than 2 GiB.
    blocks = [slice(a, min(a + AT_ONCE, size)) for a in range(0, size, AT_ONCE)]
    return pa.concat_tables(map(rows, blocks))


class _StaticLists:
    """The static completer's lists, in the catalogue's own numbers."""

    def __init__(self, catalogue: Catalogue, candidates: int) -> None:
        self.candidates = candidates
        self.folded = [fold(phrase) for phrase in catalogue.phrases]
        self._index = PrefixIndex.build(catalogue.phrases, catalogue.weights)
        number = {phrase: i for i, phrase in enumerate(catalogue.phrases)}
        self._number = np.array([number[p] for p in self._index.phrases(range(len(self._index)))])

    def top(self, prefix: str, k: int) -> np.ndarray:
        return self._number[self._index.top(prefix, k)]

    def siblings(self, wanted: int) -> np.ndarray:
        text = self.folded[wanted % len(self.folded)]
        return self.top(text[: text.find(" ") + 1] or text, SIBLINGS)
