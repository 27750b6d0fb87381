"""The page of signals: figures by their definition, and the page as it was."""

from copy import copy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.held import hold, page

from telic.completion.evaluation.json_facts import signal_facts
from telic.completion.signals import STATIC, Searches, evaluation, measured
from telic.completion.signals.evaluation import ALL, BINS, SEEN
from telic.completion.signals.groups import FEATURES, GROUP_OF, GROUPS
from telic.completion.signals.log_split import LONGEST, TESTED
from telic.completion.signals.report import SignalFindings, facts_of, fit_facts, weight_rows
from telic.completion.signals.weights import SignalWeights
from telic.data.queries import QueryLog
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


def test_what_is_listed_was_a_candidate_that_was_known_by_then(found):
    for ranks in found.ranks.values():
        assert found.candidate[ranks > 0].all()
    assert found.possible[found.candidate].all()
    assert not found.candidate.all()


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


def test_facts_count_the_first_submission_too():
    day = 24 * 60
    at = np.array([0, 2, *range(9, 161, 4)]) * day * 60_000_000
    m, users = len(at), np.array([0, 0, *np.arange(38) % 6 + 1])
    log = QueryLog(["tea"], np.zeros(m, np.int32), at, list("abcdefg"), users, np.ones(m))
    tested = SimpleNamespace(event=np.array([1, 2, 2]), unit=np.zeros(3, int))
    facts = facts_of(Searches(log, min_users=1, session_gap=3.0 * day), tested)
    assert facts["days"] == 157.0
    assert facts["share of submissions with one before them in the session"] == 1 / 40
    assert (facts["submissions tested"], facts["prefixes tested"]) == (2, 3)


@pytest.mark.parametrize(
    ("groups", "sessions", "expected"),
    [
        (None, True, ["session", "pairs", "time"]),
        (["time", "personal"], True, ["time"]),
        (None, False, ["time"]),
        (["session"], False, []),
    ],
)
def test_each_control_is_measured_as_it_is_and_exchanged(
    searches, monkeypatch, groups, sessions, expected
):
    """Those of the groups asked for; sessions only where a submission has one before it."""
    found = SimpleNamespace(event=np.arange(4), unit=np.arange(4) // 2)
    fitted, logs, said = [], [], []

    def lessons_of(log, *, shrinkage):
        logs.append(log)
        return SimpleNamespace(fit=lambda penalties: fitted.append(penalties) or penalties)

    def measured(log, models, *, shrinkage, most):
        assert (log, most) == (logs[-1], 7)
        ranks = {name: np.full(4, float(len(penalties))) for name, penalties in models.items()}
        return SimpleNamespace(**vars(found), ranks=ranks)

    def learn_pairs(log, model, chosen_by, *, shrinkage):
        assert (log, chosen_by) == (logs[-1], "moments to choose by")
        return model | {"pairs": 1.0}, None

    monkeypatch.setattr(evaluation, "lessons_of", lessons_of)
    monkeypatch.setattr(evaluation, "choosing_moments", lambda log, **_: "moments to choose by")
    monkeypatch.setattr(evaluation, "learn_pairs", learn_pairs)
    monkeypatch.setattr(evaluation, "measured", measured)
    log = copy(searches)
    log.before = searches.before if sessions else np.full(len(searches.before), -1)
    rows = evaluation.controls(log, groups, most=7, progress=said.append)
    assert [(row["group"], row["exchanged"]) for row in rows] == [
        (group, exchanged) for group in expected for exchanged in (False, True)
    ]
    # A log, as it is or shuffled, is gathered from and tested once for all of its groups.
    ways = {way: [g for g in expected if (g == "time") == (way == "time")] for way in ("", "time")}
    exchanged = [groups for groups in ways.values() if groups]
    assert said == [
        f"{', '.join(groups)}, {how}"
        for groups, how in [(expected, "as it is"), *((own, "exchanged") for own in exchanged)]
        if groups
    ]
    assert [each is log for each in logs] == [True, *[False] * len(exchanged)][: len(said)]
    assert all((row["n"], row["difference"]) == (4, 1.0) for row in rows)  # of two groups over one
    beside = [penalties.keys() for penalties in fitted if len(penalties) > 1]
    assert beside == [
        {"popularity", group}
        for groups in (expected, *exchanged)
        for group in groups
        if group != "pairs"
    ]


def test_each_group_is_compared_beside_popularity_alone(searches, monkeypatch):
    said = []
    learned = by_hand("personal", "popularity")
    lessons = SimpleNamespace(fit=lambda penalties: penalties)
    monkeypatch.setattr(evaluation, "lessons_of", lambda *given, **options: lessons)
    monkeypatch.setattr(evaluation, "choosing_moments", lambda *given, **options: ())
    monkeypatch.setattr(evaluation, "learn", lambda *given, **options: learned)
    models = evaluation.models_of(
        searches, ["popularity", "personal", "time"], progress=said.append
    )
    assert models == {
        "static": STATIC,
        "popularity": {"popularity": 10.0},
        "+ personal": {"popularity": 10.0, "personal": 10.0},
        "+ time": {"popularity": 10.0, "time": evaluation.USUAL},
        ALL: learned,
    }
    assert said == ["gathering what to learn from"]
    without = evaluation.models_of(searches, ["time"])
    assert list(without) == ["static", "+ time", ALL]
    assert without["+ time"] == {"time": evaluation.USUAL}
    monkeypatch.setattr(evaluation, "learn_pairs", lambda *given, **options: ({"pairs": 1.0}, None))
    every = evaluation.models_of(searches)
    assert list(every)[2:-1] == [f"+ {group}" for group in [*list(GROUPS)[1:], "pairs"]]
    assert every["+ pairs"] == {"pairs": 1.0}


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


def test_who_was_tested_is_said_of_a_log_that_names_anybody(searches, models, found):
    """Of rows that name nobody, those tested may be of the people from whom was learned."""
    findings = SignalFindings.of(searches, models, found, ())
    assert "users; they are later than those learned from, and of other people." in (
        findings.sentence()
    )
    findings.facts["users"] = 0
    said = "submissions that name nobody; they are later than those learned from. Popularity"
    assert said in findings.sentence()


def test_a_log_that_begins_at_later_characters_has_a_page(searches, models, found):
    """A page of a shop may ask for suggestions from the fourth character on."""
    later = found.length > 3
    columns = {
        name: getattr(found, name)[later]
        for name in ("event", "length", "unit", "possible", "candidate", "seen", "longest")
    }
    ranks = {name: own[later] for name, own in found.ranks.items()}
    findings = SignalFindings.of(searches, models, replace(found, ranks=ranks, **columns), ())
    said = findings.sentence()
    assert said.endswith(" points over all prefixes.")
    assert said in findings.page("What signals are worth").markdown()
    assert "1–3: MRR" not in findings.page("What signals are worth").markdown()


def test_what_was_not_fitted_is_said_to_be_the_static_order():
    assert fit_facts(STATIC) == {"fit": "the static order: no group helped"}
    assert fit_facts(by_hand("time"))["at most above the optimum"] == 0.001
    (row,) = weight_rows(STATIC, ["time"])
    assert row == {"group": "time", "gate": "not asked for", "penalty": None, "weights": None}


def test_a_box_says_of_each_group_its_gate_its_penalty_and_what_weighs_anything():
    def said(weights):
        facts = signal_facts(SimpleNamespace(weights=weights, session_minutes=20.0))
        assert facts["minutes without a search that end a session"] == 20.0
        return facts["signals"], facts["fit"]

    groups, fit = said(by_hand("match", "popularity", gates={"time": "off", "match": "on: well"}))
    assert list(groups) == list(GROUPS)
    for group, own in groups.items():
        weights = by_hand("match", "popularity").weights
        weighing = [
            f"{name} {weight:+.4f}"
            for name, weight, of in zip(FEATURES, weights, GROUP_OF, strict=True)
            if of == group and weight != 0
        ]
        assert own["weights"] == (", ".join(weighing) or "none")
        assert own["penalty"] == (10.0 if group in ("match", "popularity") else "none")
    gates = {group: own["gate"] for group, own in groups.items() if own["gate"] != "not asked for"}
    assert gates == {"popularity": "on", "time": "off", "match": "on: well"}
    assert groups["popularity"]["weights"] == "submissions -0.2500"  # the other weighs nothing
    assert fit == {"compositions": 321, "objective": 12.5, "at most above its optimum": 0.001}
    assert "apps" in said(by_hand("apps"))[0]
    assert "feedback" in said(by_hand(gates={"feedback": "off"}))[0]
    assert said(STATIC)[1] == {}
    pairs = replace(by_hand("pairs"), choices=0, objective=np.nan, gap=np.nan)
    facts = said(replace(pairs, pair_choices=7, pair_gap=0.25))[1]
    assert facts == {
        "prefixes of pairs": 7,
        "objective of pairs at most above its optimum": 0.25,
    }
