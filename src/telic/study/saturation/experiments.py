"""Typists whom the log does not know: what a completer fitted on others makes of their feedback."""

from dataclasses import replace
from typing import Any

import numpy as np

from telic.completion import PROTOCOLS, Replay
from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.learning.do_no_harm import bin_of, run_checks
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID
from telic.completion.learning.saturation import limits
from telic.data.compositions import read_compositions
from telic.data.queries import QueryLog, read_queries
from telic.evaluate import paired_t_test, reciprocal_ranks
from telic.report.table import finite
from telic.simulate import SETTINGS, Catalogue, read_catalogue, simulate_typists

KINDS: dict[str, dict[str, Any]] = {
    "as those of the log": {},
    "slow": {"key_seconds": (1.4, 1.4)},
    "slow, hardly ever look": {"key_seconds": (1.4, 1.4), "attention": 0.02},
    "fast": {"key_seconds": (0.07, 0.07)},
    "distracted": {"hesitation_share": 0.25, "hesitation_seconds": 4.0, "attention": 0.3},
    "with a screen reader": {
        "key_seconds": (0.3, 0.3),
        "read_seconds": 0.9,
        "attention": 0.95,
        "depth": (0.0, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.1, 0.1, 0.1),
    },
}
"""Kinds of typists: what differs from the setting that the completer is fitted on."""
COMPOSITIONS = 30
"""Of each typist who is new."""


def strangers(*, setting: str, protocol: str, users: int, seed: int) -> list[dict[str, Any]]:
    """Fit on typists of a setting and let other kinds of typists use the completer.

    A row for each kind: what feedback is worth over the static order at every keystroke, with the
    weights of users never seen: everywhere (``bare``), and where the gate is open and while the
    running check is (``served``); and how far it moved any candidate (``most``).
    """
    catalogue = read_catalogue(None)
    earlier = read_queries(
        catalogue.as_queries(simulate_typists(catalogue, users=1, compositions=1))
    )
    replay = _replay(catalogue, earlier, setting=SETTINGS[setting], users=users, of=80, seed=seed)
    way = PROTOCOLS[protocol]
    relevance = fit_relevance(replay, "mpc", way)
    models = fit_models(replay, relevance, way)
    design, gate = models.design, models.gates["adaqac-unp"]
    by_list, whole = limits(models.everyone, design.deviations, design.caps, design.bound)
    rows = []
    for kind, changes in KINDS.items():
        other = _replay(
            catalogue,
            earlier,
            setting=replace(SETTINGS[setting], **changes),
            users=users // 2,
            of=COMPOSITIONS,
            seed=1000 + seed,
        )
        moments = other.moments(relevance, other.every_keystroke(TRAIN, VALID, TEST))
        features, user = other.features(moments), other.log.user[moments.composition]
        scores = design.scores(features, moments.relevance, models.everyone)
        static = reciprocal_ranks(moments.relevance, moments.position)
        gain = reciprocal_ranks(scores, moments.position) - static
        length = other.prefix_length(moments.keystroke)
        served = np.where(gate.anywhere & gate.bins[bin_of(length)], gain, 0.0)
        times = {"begun": other.start_at, "submitted": other.log.submitted_at}
        allowed, _ = run_checks(served, moments.composition, user, **times)
        served = np.where(allowed, served, 0.0)
        parts = design.parts(
            design.columns(features, np.zeros(moments.relevance.shape)), models.everyone
        )
        most = np.abs(parts.sum(axis=-1))[moments.candidates >= 0].max()
        row = {"kind": kind, "static": float(static.mean()), "most": float(most)}
        for name, change in (("bare", gain), ("served", served)):
            test = paired_t_test(change, np.zeros(len(change)), user)
            row |= {name: [test.difference, test.low, test.high]}
        rows.append(row | {"by list": finite(by_list), "by composition": finite(whole)})
    return rows


def _replay(
    catalogue: Catalogue, earlier: QueryLog, *, setting: Any, users: int, of: int, seed: int
) -> Replay:
    log = simulate_typists(catalogue, users=users, compositions=of, setting=setting, seed=seed)
    return Replay(read_compositions(log), queries=earlier)
