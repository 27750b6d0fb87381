import numpy as np
import pytest
from scipy.stats import chisquare

from telic.errors import InputError
from telic.optim import sampling


def test_optimal_probabilities_make_all_terms_of_the_step_equal():
    constants = np.array([1.0, 5.0, 20.0])
    p = sampling.probabilities("optimal", constants, 0.3)
    terms = 3 * p / (2 * (3 * 0.3 + constants))
    np.testing.assert_allclose(terms, terms[0])
    assert p.sum() == pytest.approx(1.0)


def test_every_row_can_be_drawn_even_if_it_is_zero():
    constants = np.array([0.0, 1.0, 1.0])
    for scheme in sampling.SCHEMES:
        assert sampling.probabilities(scheme, constants, 0.0).min() > 0
    with pytest.raises(InputError, match="lipschitz"):
        sampling.probabilities("greedy", constants, 0.0)


@pytest.mark.parametrize("scheme", sampling.SCHEMES)
def test_probabilities_do_not_depend_on_the_unit_of_the_constants(scheme):
    constants = np.array([1.0, 3.0, 0.5])
    p = sampling.probabilities(scheme, constants, 0.2)
    for unit in (1e-9, 1e9):
        np.testing.assert_allclose(sampling.probabilities(scheme, unit * constants, unit * 0.2), p)


def test_the_alias_table_holds_exactly_the_probabilities():
    p = np.random.default_rng(0).dirichlet(np.full(50, 0.3))
    threshold, alias = sampling.alias_table(p)
    held = threshold.copy()
    np.add.at(held, alias, 1 - threshold)
    np.testing.assert_allclose(held / 50, p, atol=1e-15)


def test_draws_follow_the_table_and_the_seed():
    p = np.array([0.5, 0.1, 0.3, 0.1])
    threshold, alias = sampling.alias_table(p)
    first, second = sampling.random_state(3), sampling.random_state(3)
    draws = [sampling.draw(first, p.size, threshold, alias) for _ in range(4000)]
    assert draws == [sampling.draw(second, p.size, threshold, alias) for _ in range(4000)]
    assert chisquare(np.bincount(draws, minlength=4), 4000 * p).pvalue > 1e-4
