from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from telic.simulate.hospital_families import simulate_family
from telic.specialty.discovery import by_topics
from telic.specialty.discovery.by_topics import (
    CONCENTRATION,
    concentrated_cluster,
    group_by_topics,
    mean_share,
)
from telic.specialty.discovery.discover import _describe, _mean_overlap, _ordered, discover
from telic.specialty.discovery.gibbs_lda import GibbsLDA, choose_n_topics
from telic.specialty.discovery.result import Grouping, Specialty
from telic.specialty.log.access_log import AccessLog
from telic.specialty.recognition.tfidf import TopConditions
from telic.specialty.report.page import _months


def test_a_share_stands_out_by_its_own_noise():
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(4, 30.0), size=400)
    share[:40, 0] += rng.uniform(0.05, 0.6, 40)
    share /= share.sum(axis=1, keepdims=True)
    noise = rng.gamma(1.0, 0.002, size=share.shape)
    found, alone = concentrated_cluster(share, noise), concentrated_cluster(share)
    for u in range(len(share)):
        k = share[u].argmax()
        median = np.median(share[:, k])
        spread = 1.4826 * np.median(np.abs(share[:, k] - median))
        own = max(spread**2 - np.median(noise[:, k]), 0.0) + noise[u, k]
        assert found[u] == (k if share[u, k] >= median + CONCENTRATION * own**0.5 else -1)
        assert alone[u] == (k if share[u, k] >= median + CONCENTRATION * spread else -1)
    assert (found != alone).any()


def test_a_users_share_is_the_plain_mean_of_distinct_patients():
    opened = sparse.csr_array([[1, 0, 1], [0, 0, 0], [1, 1, 1]])
    topics = np.array([[0.7, 0.3], [0.2, 0.8], [0.1, 0.9]])
    expected = [[0.4, 0.6], [0.5, 0.5], [1 / 3, 2 / 3]]
    np.testing.assert_allclose(mean_share(opened, topics), expected)


def test_stability_is_the_overlap_with_the_nearest_cluster_of_each_run():
    rng = np.random.default_rng(1)
    users = np.flatnonzero(rng.random(60) < 0.3)
    runs = [np.where(rng.random(60) < 0.2, -1, rng.integers(0, 4, 60)) for _ in range(3)]
    runs[0][users] = 2
    expected = []
    for run in runs:
        clusters = [set(np.flatnonzero(run == k)) for k in range(4)]
        expected.append(max(len(c & set(users)) / len(c | set(users)) for c in clusters))
    assert _mean_overlap(users, runs) == pytest.approx(np.mean(expected))
    assert _mean_overlap(users, [np.full(60, -1)]) == 0
    assert _mean_overlap(users, []) is None


@pytest.fixture
def log():
    """30 users over three months; users 0 to 11 open encounters of the first two codes."""
    rng = np.random.default_rng(2)
    n_users, n_patients = 30, 90
    diagnosis = np.zeros((n_patients, 4), int)
    diagnosis[np.arange(n_patients), np.arange(n_patients) % 4] = 1
    user = np.repeat(np.arange(n_users), 40)
    pool = [np.flatnonzero(diagnosis[:, :2].any(axis=1)), np.flatnonzero(diagnosis[:, 2:].any(1))]
    encounter = np.concatenate([rng.choice(pool[int(u >= 12)], 40) for u in range(n_users)])
    month = rng.integers(0, 3, len(user))
    at = np.datetime64("2024-01-15", "us").astype(int) + month * 30 * 86_400_000_000
    taxonomy = np.array(["a"] * 8 + [""] * 4 + ["b"] * 18)
    ids = [np.array([f"{kind}{i:02d}" for i in range(n)]) for kind, n in (("u", 30), ("p", 90))]
    return AccessLog(
        users=ids[0],
        taxonomy=taxonomy,
        patients=ids[1],
        encounters=ids[1],
        codes=np.array(["c0", "c1", "c2", "c3"]),
        labels={"c0": "Zero"},
        access_user=user,
        access_encounter=encounter,
        access_at=at,
        access_row=1 + np.arange(len(user)),
        encounter_patient=np.arange(n_patients),
        diagnosis=sparse.csr_array(diagnosis),
        fine=None,
        fine_patient=None,
        simulated=True,
    )


def grouping(log, cluster, wrong_in_month=()):
    def by_month(rows):
        score = np.zeros((len(log.users), cluster.max() + 1))
        score[np.arange(len(log.users)), np.maximum(cluster, 0)] = 1.0
        month = log.month()[rows[0]] - log.month().min()
        for u in wrong_in_month if month == 1 else ():
            score[u] = score[u, ::-1]
        return score

    return Grouping(cluster, cluster.max() + 1, [], [], by_month, {})


def test_what_is_said_of_a_cluster(log):
    cluster = np.where(np.arange(30) < 12, 1, -1)
    cluster[12:16] = 0  # four users are too few
    found = _describe(log, grouping(log, cluster, wrong_in_month=[0, 1, 2]))
    assert list(found) == [1]
    one = found[1]
    assert one.users.tolist() == list(range(12))
    counts = log.user_diagnosis().toarray()
    overall, own = counts.sum(axis=0), counts[:12].sum(axis=0)
    base = overall / overall.sum()
    lift = (own + 50 * base) / (own.sum() + 50) / base
    order = sorted([0, 1], key=lambda d: -lift[d])
    assert [code for code, _ in one.diagnoses] == [f"c{d}" for d in order]
    assert [value for _, value in one.diagnoses] == pytest.approx(lift[order])
    assert one.name == " / ".join(["Zero", "c1"][d] for d in order)
    assert (one.listed_code, one.nearest_code) == ("a", "a")
    # In one of three months three of the twelve practise something else.
    assert one.stability_months == pytest.approx(1 - 3 / 12 / 3)
    assert one.stability is None


def test_a_cluster_without_a_practice_of_its_own_is_not_reported(log):
    assert _describe(log, grouping(log, np.arange(30) % 2)) == {}


def test_a_practice_of_most_users_is_reported_where_one_may_be_so_large(log):
    cluster = np.where(np.arange(30) >= 12, 0, -1)  # with three fifths of the work, all lifts < 2
    assert _describe(log, grouping(log, cluster)) == {}
    (one,) = _describe(log, grouping(log, cluster), large=True).values()
    assert one.diagnoses[0][1] < 2
    assert _describe(log, grouping(log, np.arange(30) % 2), large=True) == {}


def test_de_facto_specialties_come_first_then_the_largest():
    sizes, listed = [3, 9, 5, 7, 4], [None, "a", None, "b", None]
    cluster = np.repeat([-1, *range(5)], [2, *sizes])
    found = {
        k: Specialty(str(k), listed[k], None, np.flatnonzero(cluster == k), [], None, None, None)
        for k in range(5)
        if k != 4  # not reported
    }
    ordered = _ordered("lda", found, Grouping(cluster, 5, [], [], None, {}))
    assert [one.name for one in ordered.specialties] == ["2", "0", "1", "3"]
    for place, one in enumerate(ordered.specialties):
        np.testing.assert_array_equal(np.flatnonzero(ordered.cluster == place), one.users)
    assert (ordered.cluster[np.isin(cluster, [-1, 4])] == -1).all()


class Page:
    def figure(self, figure, caption):
        (self.axes,), self.caption = figure.axes, caption


class Alarms:
    def __init__(self, raised, explained):
        self.raised, self.explained = raised, explained


def test_months_of_few_patients_are_left_out(log):
    month = log.month() - log.month().min()
    few = log.encounter_patient[log.access_encounter] < 10

    def shown(raised):
        page = Page()
        _months(page, log, Alarms(raised, np.zeros(len(raised), bool)))
        bars = [bar.get_height() for bar in page.axes.patches][: len(page.axes.get_xticks())]
        return bars, page.caption

    everything = np.ones(len(month), bool)
    bars, caption = shown(everything)
    assert bars == [(month == m).sum() for m in range(3)]
    assert "Left out" not in caption
    # A month in which nothing was raised tells of nobody.
    bars, caption = shown(month != 1)
    assert bars == [(month == m).sum() * (m != 1) for m in range(3)]
    assert "Left out" not in caption
    # One month alone would be had by subtraction from the year's sum: the smallest goes with it.
    bars, caption = shown(np.where(month == 1, few, True))
    assert caption.endswith("Left out: 2 months with few patients.")
    assert bars == [max((month == m).sum() for m in (0, 2))]
    somebody = log.encounter_patient[log.access_encounter][month == 1][0]
    alone = log.encounter_patient[log.access_encounter] == somebody
    assert shown(np.where(month == 1, alone, True)) == (bars, caption)


def test_the_naive_classifier_breaks_ties_by_use_and_else_takes_the_largest_class():
    X = np.array([[9, 1, 0, 0, 0], [9, 1, 0, 0, 0], [0, 0, 5, 5, 0], [1, 0, 0, 0, 0]])
    y = ["skin", "skin", "eye", "skin"]
    model = TopConditions(n_conditions=2).fit(X, y)
    # Nothing in common with either class.
    assert model.predict([[0, 0, 0, 0, 3]]).tolist() == ["skin"]
    # One condition of each: diagnosis 0 is nine tenths of skin's accesses, 2 is half of eye's.
    assert model.predict([[4, 0, 4, 0, 0]]).tolist() == ["skin"]
    assert model.predict([[0, 4, 4, 0, 0]]).tolist() == ["eye"]
    # More shared conditions count before any use.
    assert model.predict([[0, 0, 4, 4, 0]]).tolist() == ["eye"]


def test_topics_of_encounters_and_as_many_as_there_are_practices():
    hospital = simulate_family("referrals", 0)
    log = hospital.log
    opened = log.user_encounter()
    for user in (0, 7):
        own = np.unique(log.access_encounter[log.access_user == user])
        np.testing.assert_array_equal(np.flatnonzero(opened[[user]].toarray()[0]), own)
    assert opened.max() == 1
    told: list[str] = []
    options = {"method": "lda", "document": "encounter", "restarts": 1, "progress": told.append}
    found = discover(log, n_topics="measured", **options)
    assert told[0] == "number of topics"
    assert found.details["document"] == "encounter"
    beyond_chance = discover(log, restarts=1).details["n_practices"]
    assert found.details["n_topics"] == beyond_chance > 2
    practices = {hospital.practice[one.users][0] for one in found.specialties}
    assert len(practices) >= 2
    nothing = simulate_family("referrals", 0, control="moved").log
    found = discover(nothing, method="lda", n_topics="measured", restarts=1)
    assert found.details["n_topics"] == 2  # one topic would take everybody in


def test_topics_of_users_are_those_of_the_set_of_their_diagnoses():
    """Without patients to average over, the noise of a share is that of all users."""
    log = simulate_family("referrals", 0).log
    terms = {"n_topics": 6, "restarts": 1, "seed": 3, "threads": 1, "progress": lambda step: None}
    found = group_by_topics(log, document="user", **terms)
    documents = (log.user_diagnosis() > 0).astype(int)
    model = GibbsLDA(n_topics=6, random_state=3).fit(documents)
    share = model.transform(documents)
    np.testing.assert_array_equal(found.cluster, concentrated_cluster(share))
    month = log.month() == log.month().min()
    seen = (log.user_diagnosis(month) > 0).astype(int)
    np.testing.assert_allclose(found.by_month(month), model.transform(seen))
    largest = group_by_topics(log, document="user", assign="argmax", **terms)
    np.testing.assert_array_equal(largest.cluster, share.argmax(axis=1))  # all of them open records
    assert (found.cluster < 0).any()
    # One record is enough to be in the largest topic's cluster, none is not.
    rows = ~np.isin(log.access_user, [0, 1])
    rows[np.flatnonzero(log.access_user == 1)[0]] = True
    names = ("access_user", "access_encounter", "access_at", "access_row")
    few = replace(log, **{name: getattr(log, name)[rows] for name in names})
    largest = group_by_topics(few, document="user", assign="argmax", **terms)
    assert np.flatnonzero(largest.cluster < 0).tolist() == [0]


def test_a_number_of_topics_is_chosen_by_the_perplexity_of_what_was_held_out(monkeypatch):
    monkeypatch.setattr(by_topics, "TOPIC_CANDIDATES", [2, 5])
    log, steps = simulate_family("referrals", 0).log, []
    terms = {"document": "encounter", "restarts": 1, "seed": 0, "threads": 1}
    found = group_by_topics(log, n_topics=None, progress=steps.append, **terms)
    scores = found.details["perplexity"]
    assert list(scores) == ["2", "5"]
    assert str(found.details["n_topics"]) == min(scores, key=scores.get)
    assert steps == ["number of topics", f"LDA with {found.details['n_topics']} topics"]
    _, expected = choose_n_topics(log.diagnosis, [2, 5], seed=0)
    assert scores == {str(k): round(value, 2) for k, value in expected.items()}


def test_of_two_runs_the_one_that_predicts_words_better_is_taken(log):
    documents = log.patient_diagnosis()

    def fitted(seed):
        return GibbsLDA(n_topics=4, random_state=seed).fit(documents).perplexity(documents)

    def grouped(seed, restarts):
        options = {"document": "patient", "threads": 1, "progress": lambda text: None}
        return group_by_topics(log, n_topics=4, seed=seed, restarts=restarts, **options)

    scores = [fitted(seed) for seed in range(8)]
    second = next(seed for seed in range(7) if scores[seed + 1] < scores[seed])
    both, better, other = grouped(second, 2), grouped(second + 1, 1), grouped(second, 1)
    np.testing.assert_array_equal(both.cluster, better.cluster)
    np.testing.assert_array_equal(both.restarts, [other.cluster])
    assert (better.cluster != other.cluster).any()
