"""Borders of Filtering QAC and of what weights are learned from."""

import numpy as np
import pytest

from telic.choice import Choices, fit_groups
from telic.completion import CAREFUL
from telic.completion.learning.adaqac import FeedbackDesign, unpersonalised
from telic.completion.learning.feedback import LONGEST_AT, WIDTH
from telic.completion.learning.filtering_qac import Filtering, tune_filtering
from telic.completion.learning.replayed_log import RankedKeystrokes


def moments_of(candidates):
    t, n = candidates.shape
    return RankedKeystrokes(
        np.arange(t),
        np.arange(t),
        candidates,
        np.zeros((t, n)),
        np.zeros((t, n, 3)),
        np.zeros(t, int),
        candidates >= 0,
    )


@pytest.mark.parametrize(("dwell", "drops"), [(0.2999, False), (3 * 0.1, True), (0.3, True)])
def test_filtering_drops_at_the_threshold_itself(dwell, drops):
    features = np.zeros((1, 1, WIDTH))
    features[0, 0, LONGEST_AT] = dwell
    assert np.isneginf(Filtering(0.3, 1).scores(features, np.zeros((1, 1))))[0, 0] == drops


@pytest.mark.parametrize("position", range(1, 11))
def test_filtering_drops_at_the_position_itself_and_not_below(position):
    features = np.zeros((1, 10, WIDTH))
    features[0, np.arange(10), LONGEST_AT + np.arange(10)] = 2.0  # one at each position
    dropped = np.isneginf(Filtering(1.0, position).scores(features, np.zeros((1, 10))))
    assert dropped[0].tolist() == [p <= position for p in range(1, 11)]


def test_where_filtering_changes_nothing_it_is_the_mildest():
    best, grid = tune_filtering([(moments_of(np.zeros((2, 3), np.int32)), np.zeros((2, 3, WIDTH)))])
    assert np.ptp(grid) == 0
    assert best == Filtering(3.0, 1)


def test_scales_are_those_of_candidates_and_a_constant_feature_keeps_its_own():
    features = np.zeros((2, 2, WIDTH))
    features[..., 0] = [[1.0, 3.0], [5.0, 100.0]]  # the last is no candidate
    features[..., 1] = 7.0
    design = FeedbackDesign.of(
        CAREFUL, [(moments_of(np.array([[0, 1], [2, -1]], np.int32)), features)]
    )
    assert design.deviations[0] == pytest.approx(np.std([1.0, 3.0, 5.0]))
    assert design.deviations[1] == 1.0


def test_users_without_training_data_do_not_count_in_the_average():
    rng = np.random.default_rng(0)
    start = np.arange(0, 91, 3)
    choices = Choices(
        rng.normal(size=(90, 2)),
        np.zeros(90),
        start,
        start[:-1] + rng.integers(0, 3, 30),
        [0, 10, 10, 20, 30],
    )
    everyone, without = unpersonalised(choices, l2=1.0, variant="average")
    own = fit_groups(choices, l2=1.0)
    np.testing.assert_allclose(everyone, own[[0, 2, 3]].mean(axis=0))
    np.testing.assert_allclose(without[1], everyone)
    np.testing.assert_allclose(without[2], own[[0, 3]].mean(axis=0))
