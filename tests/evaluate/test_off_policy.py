"""Values of policies from logs of another, where the truth is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.errors import InputError
from telic.evaluate import doubly_robust, ips, mean_weight, paired_t_test, snips
from telic.simulate.trials import simulate_trial

choices = st.lists(
    st.tuples(st.floats(-5, 5), st.floats(0.05, 1), st.integers(0, 3)), min_size=1, max_size=30
)


@given(choices)
def test_the_policy_that_was_logged_is_worth_what_was_observed(log):
    reward, propensity, user = map(np.array, zip(*log, strict=True))
    for estimate in (ips, snips):
        own = estimate(reward, propensity, propensity, user)
        assert own.value == pytest.approx(reward.mean(), abs=1e-12)
        assert own.effective == pytest.approx(len(log))
        if len(set(user)) > 1:
            assert own.low <= own.value <= own.high


@given(choices)
def test_estimates_are_their_definitions(log):
    reward, propensity, user = map(np.array, zip(*log, strict=True))
    target = np.linspace(0.1, 1, len(log))
    w = target / propensity
    assert ips(reward, propensity, target, user).value == pytest.approx((w * reward).mean())
    found = snips(reward, propensity, target, user).value
    assert found == pytest.approx((w * reward).sum() / w.sum(), abs=1e-9)
    assert reward.min() - 1e-9 <= found <= reward.max() + 1e-9


@pytest.mark.parametrize("users", [2, 30])
def test_one_choice_of_each_user_has_the_interval_of_the_mean(users):
    rng = np.random.default_rng(0)
    reward, everyone = rng.random(users), np.arange(users)
    half = np.full(users, 0.5)
    own = snips(reward, half, half, everyone)
    test = paired_t_test(reward, np.zeros(users), everyone)
    assert (own.low, own.high) == pytest.approx((test.low, test.high))
    alone = snips(reward, half, half, np.zeros(users, int))
    assert np.isnan([alone.low, alone.high]).all(), "one user has no spread"


def trials(**changes):
    return [simulate_trial(users=60, choices=20, seed=seed, **changes) for seed in range(300)]


@pytest.mark.parametrize("estimate", [ips, snips])
def test_intervals_hold_the_truth_as_often_as_they_say(estimate):
    """In 300 simulated trials; a binomial's central 99.9 % are 0.90 to 0.985."""
    held = {0: [], 1: []}
    for trial in trials():
        for arm in (0, 1):
            value = estimate(trial.reward, trial.propensity, trial.arm == arm, trial.user)
            # Users are drawn with their habits, of whom the truth of these is known.
            held[arm].append(value.low <= trial.truth[arm] <= value.high)
    for hits in held.values():
        assert np.mean(hits) >= 0.90


@pytest.mark.parametrize("few", [2, 3])
def test_an_arm_of_few_people_has_an_interval_that_is_wide_enough(few):
    """Fifty others, none of whom was ever in it, do not say how far its people differ."""
    rng, held = np.random.default_rng(0), []
    user = np.repeat(np.arange(few + 50), 4)
    arm = user < few
    propensity = np.where(arm, few, 50) / (few + 50)
    for _ in range(400):
        reward = rng.normal(size=few + 50)[user] + 0.3 * rng.normal(size=len(user))
        own, other = (snips(reward, propensity, here, user) for here in (arm, ~arm))
        lift = own.less(other)
        held.append((own.low <= 0 <= own.high, lift.low <= 0 <= lift.high))
    assert (np.mean(held, axis=0) >= 0.91).all()


def test_an_arm_of_one_person_has_no_interval():
    reward, user = np.array([1.0, 1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 2, 3])
    half = np.full(5, 0.5)
    alone, others = (snips(reward, half, here, user) for here in (user == 0, user > 0))
    assert alone.value == 1
    assert others.low < others.high
    for value in (alone, alone.less(others), others.less(alone)):
        assert np.isnan([value.low, value.high]).all()


def test_a_lift_is_found_where_means_of_the_arms_mislead():
    none, plain, estimated = [], [], []
    for trial in trials(lift=0.05):
        first, second = (
            snips(trial.reward, trial.propensity, trial.arm == arm, trial.user) for arm in (0, 1)
        )
        difference = second.less(first)
        estimated.append(difference.value)
        none.append(difference.low <= 0.05 <= difference.high)
        own = [trial.reward[trial.arm == arm].mean() for arm in (0, 1)]
        plain.append(own[1] - own[0])
    assert np.mean(estimated) == pytest.approx(0.05, abs=0.005)
    assert np.mean(none) >= 0.90
    assert np.mean(plain) > 0.07  # the second arm was given more when more was accepted


def test_a_model_of_what_arms_earn_takes_chance_away_and_either_half_may_be_wrong():
    error = {kind: [] for kind in ("ips", "right", "model wrong", "shares wrong", "both wrong")}
    held = []
    for trial in trials():
        grown = 0.25 + 0.2 * (np.arange(len(trial.arm)) // 60) / 19
        for kind, errors in error.items():
            shares = trial.propensity if "shares" not in kind and "both" not in kind else 0.5
            given = trial.reward, shares + 0 * trial.propensity, trial.arm == 1, trial.user
            if kind == "ips":
                errors.append(ips(*given).value - trial.truth[1])
                continue
            model = grown if kind in ("right", "shares wrong") else 0.9 - grown
            value = doubly_robust(
                *given, expected=model + 0.05 * trial.arm, expected_of_target=model + 0.05
            )
            errors.append(value.value - trial.truth[1])
            if kind == "right":
                held.append(value.low <= trial.truth[1] <= value.high)
    mean = {kind: abs(np.mean(errors)) for kind, errors in error.items()}
    assert max(mean["right"], mean["model wrong"], mean["shares wrong"]) < 0.005
    assert mean["both wrong"] > 0.05
    assert np.std(error["right"]) < 0.9 * np.std(error["ips"])
    assert np.mean(held) >= 0.90


@pytest.mark.parametrize("expected", [[0.5], [0.5, np.nan], ["a", "b"]])
def test_a_model_expects_one_number_for_each_choice(expected):
    two = np.array([0.5, 0.5])
    with pytest.raises(InputError, match="one finite number for each choice"):
        doubly_robust(two, two, two, [1, 2], expected=np.array(expected), expected_of_target=two)


@pytest.mark.parametrize("estimate", [ips, snips])
def test_lists_are_columns_too(estimate):
    given = [1, 0, 1], [0.5, 0.25, 0.5], [1, 1, 0], ["a", "b", "b"]
    assert estimate(*given).value == estimate(*map(np.array, given)).value


def test_wrong_propensities_are_noticed():
    trial = simulate_trial(seed=3)
    right = mean_weight(trial.propensity, trial.arm == 1, trial.user)
    assert right.low <= 1 <= right.high
    wrong = mean_weight(np.full(len(trial.arm), 0.5), trial.arm == 1, trial.user)
    assert wrong.high < 1


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_right_propensities_are_right_however_much_some_users_search(share):
    """Each user is drawn into an arm once; one in a hundred then searches hundreds of times."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(300):
        second = rng.random(100) < share
        user = np.repeat(np.arange(100), np.minimum(rng.zipf(1.7, 100), 1000))
        propensity = np.where(second, share, 1 - share)[user]
        found = mean_weight(propensity, second[user], user, level=0.999)
        wrong += second.any() and not found.low <= 1 <= found.high
    assert wrong <= 3


def test_an_arm_in_which_people_search_more_has_right_propensities():
    """Forty of eighty are in each arm, and those of the second search three times as often."""
    user = np.repeat(np.arange(80), np.tile([1, 3], 40))
    found = mean_weight(np.full(len(user), 0.5), user % 2 == 1, user)
    assert found.value == pytest.approx(1)


def test_an_enormous_weight_leaves_an_interval_about_its_value():
    found = mean_weight(np.array([1e-100, 0.5, 0.5]), np.full(3, 0.5), np.arange(3))
    assert 0 <= found.low < found.value < found.high < np.inf


def test_weights_that_are_one_or_nothing_have_an_interval():
    user = np.array([0, 0, 1, 2])
    always = mean_weight(np.full(4, 0.5), np.full(4, 0.5), user)
    assert (always.value, always.high) == (1, 1)
    never = mean_weight(np.full(4, 0.5), np.zeros(4), user)
    assert (never.value, never.low, never.high) == (0, 0, 0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reward": []}, "no choice"),
        ({"propensity": [0.5, 0.0]}, "propensity"),
        ({"propensity": [0.5, np.nan]}, "propensity"),
        ({"target": [0.5, 1.5]}, "target"),
        ({"reward": [1.0, np.inf]}, "reward"),
        ({"group": [1]}, "length"),
        ({"target": [0.0, 0.0]}, "none of the choices"),
        ({"reward": ["a", "b"]}, "columns of numbers"),
        ({"reward": np.ones((2, 1))}, "columns of numbers"),
        ({"reward": np.ma.array([1.0, 0.0], mask=[0, 1])}, "nothing in them masked"),
        ({"group": np.array(["ada", None], object)}, "columns of numbers"),
    ],
)
def test_what_is_no_log_of_choices_is_refused(changed, message):
    given = {"reward": [1.0, 0.0], "propensity": [0.5, 0.5], "target": [1, 0], "group": [1, 2]}
    with pytest.raises(InputError, match=message):
        snips(**{name: np.asanyarray(value) for name, value in (given | changed).items()})


def test_estimates_are_compared_on_the_same_choices():
    one, other = (ips(np.ones(n), np.ones(n), np.ones(n), np.arange(n)) for n in (2, 3))
    with pytest.raises(InputError, match="choices of 2 and 3 groups, expected the same"):
        one.less(other)
