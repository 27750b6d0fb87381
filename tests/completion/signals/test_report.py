"""The page of signals: figures by their definition, and the page as it was."""

from pathlib import Path

import numpy as np
import pytest
from tests.held import hold, page

from telic.completion.signals import STATIC, Searches, measured
from telic.completion.signals.evaluation import ALL, BINS, SEEN
from telic.completion.signals.groups import FEATURES, GROUP_OF
from telic.completion.signals.log_split import LONGEST, TESTED
from telic.completion.signals.report import SignalFindings, facts_of, fit_facts, weight_rows
from telic.completion.signals.weights import SignalWeights
from telic.simulate.searchers import searchers

SHOWN = 10


@pytest.fixture(scope="module")
def searches():
    return Searches(searchers(users=40, sessions=8, nouns=40, seed=3), min_users=2)


@pytest.fixture(scope="module")
def models():
    """Weights by hand: what is told of them does not depend on a fit."""
    return {
        "static": STATIC,
        "+ personal": by_hand("personal", gates={"time": "off: -0.10 (-0.31 to 0.11)"}),
        ALL: by_hand("personal", "session", gates={"session": "on: 0.20 (0.11 to 0.31)"}),
    }


def by_hand(*groups, **found):
    weights = np.where(np.isin(GROUP_OF, groups), 0.25 * (np.arange(len(GROUP_OF)) % 5 - 1), 0.0)
    numbers = {"choices": 321, "objective": 12.5, "static": 14.25, "gap": 0.001}
    penalties = dict.fromkeys(groups, 10.0)
    return SignalWeights(weights, penalties, np.ones(len(FEATURES)), **numbers, **found)


@pytest.fixture(scope="module")
def found(searches, models):
    return measured(searches, models)


def mean(values):
    return pytest.approx(sum(values) / len(values))


def test_rows_are_means_over_the_prefixes_of_a_slice(found, models):
    bounds = {f"{name} characters": (found.length, *ends) for name, ends in BINS.items()}
    for column, what in enumerate(("user", "query")):
        bounds |= {f"{what} seen {n}": (found.seen[:, column], *ends) for n, ends in SEEN.items()}
    bounds["all"] = (found.length, 0, np.inf)
    rows = {(row["slice"], row["model"]): row for row in found.rows()}
    assert set(rows) == {(name, model) for name in bounds for model in models}
    for (name, model), row in rows.items():
        values, first, last = bounds[name]
        inside = [t for t, value in enumerate(values) if first <= value < last]
        assert row["n"] == len(inside)
        if not inside:
            assert row["difference"] is None
            continue
        ranks = [found.ranks[model][t] for t in inside]
        assert row["mrr"] == mean(ranks)
        for k in (1, 3, SHOWN):
            assert row[f"sr@{k}"] == mean([rank >= 1 / k for rank in ranks])
        assert row["ceiling"] == mean([found.possible[t] for t in inside])
        assert row["reached"] == mean([found.candidate[t] for t in inside])
        if model == "static":
            assert row["difference"] is None
            continue
        by_unit = {}
        for t in inside:
            gain = found.ranks[model][t] - found.ranks["static"][t]
            by_unit.setdefault(found.unit[t], []).append(gain)
        assert row["difference"] == mean([sum(each) / len(each) for each in by_unit.values()])


def test_effort_is_where_a_query_first_comes_up(found, searches):
    """One that never does costs all its characters."""
    rows = {row["model"]: row for row in found.effort()}
    for model, ranks in found.ranks.items():
        needed = {}
        for k in (5, SHOWN):
            first = dict.fromkeys(found.event.tolist())
            for event, length, rank in zip(found.event, found.length, ranks, strict=True):
                if rank >= 1 / k and first[event] is None:
                    first[event] = length
            whole = {e: len(searches.index.phrase(searches.query[e])[:LONGEST]) for e in first}
            needed[k] = [whole[e] if n is None else min(n, whole[e]) for e, n in first.items()]
        assert rows[model]["n"] == len(needed[5])
        assert rows[model]["to top 5"] == mean(needed[5])
        saved = [1 - n / own for n, own in zip(needed[SHOWN], whole.values(), strict=True)]
        assert rows[model]["saved"] == mean(saved)


def test_facts_count_the_log_and_what_was_tested(searches, found):
    facts = facts_of(searches, found)
    users = {int(user) for user in searches.user if user >= 0}
    tested = [e for e, part in enumerate(searches.part) if part == TESTED]
    assert (
        facts["submissions"]
        == len(searches.at)
        == sum(facts[f"submissions to {what}"] for what in ("learn from", "choose by", "test on"))
        + sum(searches.part == 0)
    )
    assert facts["users"] == len(users)
    assert facts["phrases"] == len({*searches.query.tolist()})
    assert facts["days"] == pytest.approx((max(searches.at) - min(searches.at)) / 864e8, abs=0.06)
    assert facts["submissions to test on"] == facts["submissions tested"] == len(tested)
    assert facts["users tested"] == len({*searches.unit[tested].tolist()})
    assert facts["prefixes tested"] == len(found.event)
    share = "share of submissions with one before them in the session"
    assert facts[share] == mean([before >= 0 for before in searches.before])


def test_a_page_of_signals_is_as_it_was(searches, models, found):
    numbers = {"difference": 0.012, "low": -0.001, "high": 0.025}
    unknown = {"difference": 0.004, "low": None, "high": None}
    controlled = [
        {"group": "session", "exchanged": False, "n": 1200} | numbers,
        {"group": "session", "exchanged": True, "n": 1200} | dict.fromkeys(numbers),
        {"group": "time", "exchanged": True, "n": 34} | unknown,
    ]
    findings = SignalFindings.of(searches, models, found, controlled)
    report = findings.page("What signals are worth")
    written = findings.as_json()
    assert SignalFindings.from_json(written) == findings
    rest = [written["facts"], written["signals"], [findings.sentence("searchers")]]
    tables = [[table.title, table.note] for table in findings.tables()]
    hold(Path(__file__).parent / "signals.jsonl", [*page(report), *rest, *tables])


def test_a_difference_without_an_interval_is_said_without_one(searches, models, found):
    findings = SignalFindings.of(searches, models, found, ())
    for row in findings.rows:
        row |= {"difference": -0.0123, "low": None, "high": None}
    assert "The signals that help add -1.23 points" in findings.sentence()
    assert "personal -1.23." in findings.sentence()


def test_what_was_not_fitted_is_said_to_be_the_static_order():
    assert fit_facts(STATIC) == {"fit": "the static order: no group helped"}
    assert fit_facts(by_hand("time"))["at most above the optimum"] == 0.001
    (row,) = weight_rows(STATIC, ["time"])
    assert row == {"group": "time", "gate": "not asked for", "penalty": None, "weights": None}
