"""Team-draft interleaving by its definition, and what is preferred where the truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.evaluate import paired_t_test, preference, team_draft

rankings = st.lists(st.integers(0, 12), unique=True, max_size=10)


@given(rankings, rankings, st.integers(0, 12), st.integers(0, 99))
def test_each_picks_its_best_that_is_left(a, b, length, seed):
    drawn = team_draft(a, b, length=length, seed=seed)
    assert len(drawn.items) == min(length, len({*a, *b}))
    assert len(set(drawn.items)) == len(drawn.items)
    for i, (item, team) in enumerate(zip(drawn.items, drawn.teams, strict=True)):
        left = [each for each in (a, b)[team] if each not in drawn.items[:i]]
        assert item == left[0]
        picks = drawn.teams[: i + 1]
        if set(a) == set(b):
            assert abs(picks.count(0) - picks.count(1)) <= 1


def test_propensities_are_how_often_a_draw_comes():
    rng, drawn = np.random.default_rng(0), {}
    for _ in range(4000):
        found = team_draft("abcd", "dcba", length=4, seed=rng)
        drawn.setdefault(tuple(found.teams), []).append(found.propensity)
    assert len(drawn) == 4
    for propensities in drawn.values():
        assert set(propensities) == {0.25}
        assert len(propensities) / 4000 == pytest.approx(0.25, abs=0.03)


def mean_preference(wanted_at, *, people=3000):
    """People want the item at these places of the two rankings, and take it where they see it."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(people):
        a, b = rng.permutation(8).tolist(), rng.permutation(8).tolist()
        for ranking, at in zip((a, b), wanted_at, strict=True):
            ranking.remove(0)
            ranking.insert(at, 0)
        drawn = team_draft(a, b, length=6, seed=rng)
        seen = drawn.items[: rng.integers(1, 7)]  # people look down to somewhere
        found.append(preference(drawn, 0 if 0 in seen else None))
    return paired_t_test(np.array(found, float), np.zeros(people), np.arange(people))


def test_equals_are_not_told_apart_and_the_better_is_preferred():
    equal = mean_preference((2, 2))
    assert equal.low <= 0 <= equal.high
    assert mean_preference((4, 1)).low > 0
    assert mean_preference((0, 3)).high < 0


def test_who_takes_nothing_of_the_list_prefers_none():
    drawn = team_draft("ab", "ba", length=2, seed=0)
    assert preference(drawn, None) == preference(drawn, "z") == 0
