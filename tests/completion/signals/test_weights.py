"""Fits are certified, controls stay off, causes that are there are found, and are served."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

from telic.choice import newton
from telic.completion.signals import (
    GROUPS,
    STATIC,
    Searches,
    choosing_moments,
    controls,
    learn,
    lessons_of,
    measured,
    models_of,
)
from telic.completion.signals.groups import GROUP_OF
from telic.completion.signals.weights import Lessons, some_of, static_score
from telic.errors import InputError
from telic.simulate.searchers import Causes, searchers

MANY = Causes(refine=0.3, sibling=0.2, associated=0.2, repeat=0.15)
NOTHING = Causes(**dict.fromkeys(Causes.__dataclass_fields__, 0.0))


@pytest.fixture(scope="module")
def caused():
    return Searches(searchers(MANY, users=120, sessions=25, nouns=80, seed=3))


@pytest.fixture(scope="module")
def lessons(caused):
    return lessons_of(caused)


@pytest.fixture(scope="module")
def chosen_by(caused):
    return choosing_moments(caused)


def test_a_fit_is_the_optimum_of_its_definition(lessons):
    penalties = {"personal": 3.0, "session": 50.0, "popularity": 10.0}
    found = lessons.fit(penalties)
    x, offset, start, chosen = lessons._x, lessons._offset, lessons._start, lessons._chosen
    on = np.flatnonzero([group in penalties for group in GROUP_OF])
    penalty = np.array([penalties[GROUP_OF[j]] for j in on])

    def objective(w):
        loss, score = 0.0, offset + x[:, on] @ w
        for i, wanted in enumerate(chosen):
            own = score[start[i] : start[i + 1]]
            loss += np.logaddexp.reduce(own) - score[wanted]
        return loss + (penalty * w**2).sum() / 2

    w = found.weights[on] * found.deviations[on]
    assert found.objective == pytest.approx(objective(w))
    assert found.static == pytest.approx(objective(np.zeros(len(on))))
    assert found.objective < found.static
    best = scipy.optimize.minimize(objective, w, method="BFGS", options={"maxiter": 3}).fun
    assert found.objective <= best + found.gap + 1e-8 * best
    assert (found.weights[[group not in penalties for group in GROUP_OF]] == 0).all()


def test_groups_that_are_off_leave_queries_of_ones_own_out(lessons, caused, chosen_by):
    found = lessons.fit({"session": 10.0})
    for moments in chosen_by:
        scores = found.scores(moments)
        assert (scores[~moments.known] == -np.inf).all()
        assert (scores[moments.known] > -np.inf).all()
        static = STATIC.scores(moments)[moments.known]
        assert (static == static_score(moments)[moments.known]).all()


def test_a_fit_that_fails_keeps_the_static_order_and_says_so(lessons, monkeypatch):
    from sklearn.exceptions import ConvergenceWarning

    def worse(choices, *, l2):
        return np.full(choices.x.shape[1], 50.0)

    monkeypatch.setattr("telic.completion.signals.weights.fit_pooled", worse)
    with pytest.warns(ConvergenceWarning, match="above its optimum"):
        found = lessons.fit({"session": 1.0})
    assert (found.weights == 0).all()
    assert found.objective == found.static
    assert found.gap > 0


def test_causes_that_are_there_are_found_and_others_stay_off(caused, lessons, chosen_by):
    found = learn(caused, lessons, chosen_by)
    assert {"personal", "session"} <= set(found.penalties)
    assert set(found.gates) == {*GROUPS, "pairs"}
    for group, said in found.gates.items():
        assert said.startswith("on" if group in found.penalties else "off")


def test_what_two_users_have_in_common_opens_no_gate():
    """Two who gain alike do so by chance one time in four, and their spread tells nothing of it."""
    few = Searches(searchers(replace(NOTHING, repeat=0.8), users=4, sessions=12, nouns=40, seed=1))
    found = learn(few, lessons_of(few), choosing_moments(few), ("personal",))
    assert found.gates["personal"].startswith("off: MRR +")
    assert found.gates["personal"].endswith(", of too few users")
    assert not found.penalties


@pytest.mark.slow
def test_without_causes_no_signal_is_worth_anything():
    searches = Searches(searchers(NOTHING, users=120, sessions=25, nouns=80, seed=4))
    models = models_of(searches)
    for said in models["all that help"].gates.values():
        low = float(said.partition("(")[2].split()[0])
        assert said.startswith("on") == (low > 0), said  # on with certainty, or off
    found = measured(searches, models, most=2000)
    rows = {row["model"]: row for row in found.rows() if row["slice"] == "all"}
    for model in ("+ time", "+ personal", "+ session", "all that help"):
        assert abs(rows[model]["difference"]) < 0.006, model
        assert rows[model]["low"] <= 0.001, model


def test_exchanged_sessions_and_times_are_worth_nothing(caused):
    rows = {(row["group"], row["exchanged"]): row for row in controls(caused, most=2000)}
    assert rows["session", False]["low"] > 0.005
    for group in ("session", "pairs", "time"):
        assert abs(rows[group, True]["difference"]) < 0.005
        assert rows[group, True]["low"] < 0.001


def test_nothing_is_learned_where_no_query_was_among_the_candidates(chosen_by):
    missed = [replace(each, position=np.full_like(each.position, -1)) for each in chosen_by]
    with pytest.raises(InputError, match="too few are submitted by several users"):
        Lessons(missed)


def test_penalties_must_be_numbers_of_known_groups(lessons):
    with pytest.raises(InputError, match="penalty of 'apps'"):
        lessons.fit({"apps": 1.0})
    with pytest.raises(InputError, match="penalty of 'pairs'"):
        lessons.fit({"pairs": 1.0})  # they are learned from other lessons
    with pytest.raises(InputError, match="penalty of 'time' is 0"):
        lessons.fit({"time": 0})
    assert lessons.fit({}) is STATIC


def test_the_bound_of_the_gap_is_one():
    from telic.choice import Choices, fit_pooled, gap_bound

    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = rng.integers(1, 6, 30)
        start = np.concatenate([[0], np.cumsum(sizes)])
        choices = Choices(
            rng.normal(size=(start[-1], 3)),
            rng.normal(size=start[-1]),
            start,
            start[:-1] + rng.integers(0, sizes),
        )
        l2 = float(rng.choice([0.01, 1.0, 100.0]))
        best = choices.loss(fit_pooled(choices, l2=l2), l2=l2)
        w = rng.normal(size=3)
        assert choices.loss(w, l2=l2) - best <= gap_bound(choices, w, l2=l2) + 1e-9
        assert gap_bound(choices, fit_pooled(choices, l2=l2), l2=l2) < 1e-6
    assert newton.gap_bound is gap_bound


def test_of_many_submissions_some_are_drawn_in_order():
    events = np.arange(0, 100, 2)
    assert some_of(events, 50, np.random.default_rng(0)) is events
    drawn, fewer, others = (
        some_of(events, most, np.random.default_rng(seed))
        for most, seed in ((49, 0), (10, 0), (10, 1))
    )
    assert len(drawn) == len(set(drawn)) == 49
    assert (np.diff(drawn) > 0).all()
    assert np.isin(drawn, events).all()
    assert fewer.tolist() != others.tolist()
