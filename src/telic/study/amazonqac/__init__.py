"""AmazonQAC (arXiv 2411.04129): signals at real prefixes, on the published test split."""

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from telic.completion.engine.folding import fold
from telic.completion.signals import GROUPS, STATIC, Lessons, Searches, learn, learn_pairs
from telic.completion.signals.evaluation import ALL, compared
from telic.completion.signals.groups import PAIRS
from telic.completion.signals.pair_weights import MOST_PAIRED
from telic.completion.signals.report import weight_rows
from telic.completion.signals.sweep import SHRINKAGE, walk
from telic.completion.signals.weights import USUAL, SignalWeights, some_of
from telic.data.queries import QueryLog
from telic.data.tables import one_chunk
from telic.errors import InputError, expect_whole
from telic.evaluate import success_rate
from telic.report import Report, Table
from telic.study.amazonqac.rows import Source
from telic.study.steps import SPREAD, Steps

PUBLISHED = {
    "published: prefix tree (completr)": (0.285, 0.180),
    "published: fine-tuned language model": (0.37, None),
}
"""S@10 and MRR@10 of arXiv 2411.04129 on its test split."""
MOST_LEARNED, MOST_CHOSEN = 100_000, 20_000
PARTS = {
    "+ time": ("popularity", "time"),
    "+ personal": ("popularity", "personal"),
    "+ session": ("popularity", "session"),
    "+ time, session": ("popularity", "time", "session"),
    "+ personal, session": ("popularity", "personal", "session"),
}
"""Groups of the models beside the static order and all that help."""


def study(
    steps: Steps,
    *,
    data: Path | None = None,
    share: float = 0.02,
    min_sessions: int = 4,
    seed: int = 0,
) -> Report:
    """Learn on a share of the training split, test on the whole test split.

    Weights are learned from prefixes that were really typed, late in the training split, and
    penalties chosen on the last ones, on other sessions. What is completed is the test split's
    published prefix; what is known of its user are the past searches that it gives.

    Parameters
    ----------
    steps : Steps
        Its folder also keeps what was read of each training file.
    data : path
        The folder that holds AmazonQAC's ``train`` and ``test``.
    share : float in (0, 1]
        Part of the sessions of the training split.
    min_sessions : int
        A term may be suggested once so many sessions searched for it; the data set holds only terms
        of at least four.
    seed : int
    """
    if data is None:
        raise InputError("name the folder of AmazonQAC that holds train/ and test/ with --data.")
    source = Source(Path(data), share, seed)
    expect_whole(1, min_sessions=min_sessions)
    # The rows have no name here, so that they can go once they are a log.
    found = evaluated(
        source.read(steps.folder, steps.progress),
        min_sessions=min_sessions,
        seed=seed,
        steps=steps,
    )
    report = Report(
        "AmazonQAC",
        lead=f"{found['submissions']:,} submissions of {found['sessions']:,} sessions, a share of "
        f"{share:g} of the training split's sessions; {found['tested']:,} prefixes of the test "
        f"split. The wanted term began with what was typed and was known by then at "
        f"{100 * found['ceiling']:.1f} % of them, and among the candidates at "
        f"{100 * found['reached']:.1f} %.",
    )
    report.table(_results_table(found["results"]))
    report.table(
        Table(
            "What was learned",
            {"group": "", "gate": "", "penalty": "g", "weights": ""},
            [
                [row[key] for key in ("group", "gate", "penalty", "weights")]
                for row in found["signals"]
            ],
        )
    )
    return report


def evaluated(rows: pa.Table, *, min_sessions: int, seed: int, steps: Steps) -> dict[str, Any]:
    """Fit on the submissions, test on those that are to be tested; plain JSON."""
    log, typed, tested = _as_log(rows)
    del rows
    _give_back()
    order = np.argsort(log.at, kind="stable")
    typed, tested = typed[order], tested[order]
    searches = Searches(log, min_users=min_sessions, seed=seed)
    del log, order
    _give_back()
    steps.progress("gathering what to learn from")
    events = np.flatnonzero((typed > 0) & ~tested)
    if not len(events) or not tested.any():
        raise InputError("AmazonQAC: no submission to learn from, or none to test on.")
    half = np.random.default_rng([seed, 6]).permutation(searches.users) % 2 == 0
    first, last = searches.at[events[[int(0.5 * len(events)), int(0.8 * len(events))]]]
    own, at = half[searches.user[events]], searches.at[events]
    learned, chosen = events[own & (at >= first) & (at < last)], events[~own & (at >= last)]
    paired = some_of(learned, MOST_PAIRED, np.random.default_rng([seed, 8]))
    learned = some_of(learned, MOST_LEARNED, np.random.default_rng([seed, 7]))
    chosen = some_of(chosen, MOST_CHOSEN, np.random.default_rng([seed, 7]))
    if not len(learned) or not len(chosen):
        raise InputError("AmazonQAC: too few submissions to split. Raise --share.")
    lessons = Lessons(walk(searches, learned, typed[learned], shrinkage=SHRINKAGE))
    chosen_by = list(walk(searches, chosen, typed[chosen], shrinkage=SHRINKAGE))
    others = [group for group in searches.groups if group != PAIRS]
    whole = learn(searches, lessons, chosen_by, others, progress=steps.progress)
    penalties = dict.fromkeys(GROUPS, USUAL) | whole.penalties
    parts = {
        name: lessons.fit({group: penalties[group] for group in groups})
        for name, groups in PARTS.items()
    }
    del lessons  # they are large, and so is what comes
    given = paired, typed[paired]
    steps.progress("weights of pairs")
    parts["+ session, pairs"], _ = learn_pairs(searches, parts["+ session"], chosen_by, given)
    with_pairs, worth = learn_pairs(searches, whole, chosen_by, given)
    gates = whole.gates | {PAIRS: worth.said}
    whole = replace(with_pairs if worth.certain else whole, gates=gates)
    models: dict[str, SignalWeights] = {"static": STATIC, **parts, ALL: whole}
    steps.progress("testing")
    wanted = np.flatnonzero(tested)
    # Of a prefix that the term does not begin with, nothing that begins with it can be wanted.
    asked = wanted[typed[wanted] > 0]
    pieces = list(walk(searches, asked, typed[asked]))
    unit = searches.user[wanted]
    ranks = {name: np.zeros(len(wanted)) for name in models}
    for name, model in models.items():
        ranks[name][typed[wanted] > 0] = np.concatenate([model.ranks(piece) for piece in pieces])
    results = [
        {
            "model": name,
            "sr@10": success_rate(own, 10),
            "mrr": float(own.mean()),
            **compared(own, None if name == "static" else ranks["static"], unit),
        }
        for name, own in ranks.items()
    ]
    return {
        "submissions": len(searches),
        "sessions": searches.users,
        "tested": len(wanted),
        "ceiling": float(sum(piece.possible.sum() for piece in pieces) / len(wanted)),
        "reached": float(sum((piece.position >= 0).sum() for piece in pieces) / len(wanted)),
        "results": results,
        "signals": weight_rows(whole, searches.groups),
    }


def _give_back() -> None:
    """Let the system have the memory that Arrow no longer needs: half of what the rows took."""
    pa.default_memory_pool().release_unused()


def _as_log(rows: pa.Table) -> tuple[QueryLog, np.ndarray, np.ndarray]:
    """Make a query log, and per row the characters typed (0: none that fit) and whether tested.

    What is to be tested counts as no submission: the next ones must not learn from it.
    """
    terms, sessions = one_chunk(rows["term"]), one_chunk(rows["session"])
    texts = terms.dictionary.to_pylist()
    query = terms.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    tested = one_chunk(rows["tested"]).to_numpy(zero_copy_only=False)
    forms = [fold(text) for text in texts]
    prefixes = chain.from_iterable(piece.to_pylist() for piece in rows["typed"].chunks)
    typed = np.fromiter(
        (
            len(prefix) if prefix and forms[q].startswith(prefix) else 0
            for q, prefix in zip(query, (text and fold(text) for text in prefixes), strict=True)
        ),
        np.int32,
        len(rows),
    )
    log = QueryLog(
        texts,
        query,
        one_chunk(rows["at"]).to_numpy(),
        sessions.dictionary.to_pylist(),
        sessions.indices.to_numpy(zero_copy_only=False).astype(np.int32),
        (~tested).astype(float),
    )
    return log, typed, tested


def _results_table(results: list[dict[str, Any]]) -> Table:
    rows: list[list[Any]] = [
        [
            row["model"],
            row["sr@10"],
            row["mrr"],
            None if row["low"] is None else [row["difference"], row["low"], row["high"]],
        ]
        for row in results
    ]
    rows += [[name, success, mrr, None] for name, (success, mrr) in PUBLISHED.items()]
    return Table(
        "The test split, beside what is published",
        {"": "", "S@10": ".3f", "MRR@10": ".3f", "MRR − static, points": SPREAD},
        rows,
        "Intervals of 95 % over sessions. Published figures are of arXiv 2411.04129, learned from "
        "the whole training split; its ceiling is about 0.70.",
    )
