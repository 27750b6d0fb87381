"""What the gate and the running check promise."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from telic.completion.learning import do_no_harm
from telic.completion.learning.do_no_harm import (
    ALLOWANCE,
    BUDGET,
    FORGETTING,
    LEVEL,
    MARGIN,
    PREFIX_BINS,
    Gate,
    RunningCheck,
    gate_facts,
    run_checks,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
import adaqac as reference

LENGTHS = np.array([2, 5, 8, 11, 20])  # one in each range


def with_p_value(p, users=12):
    """Gains, one a user, whose one-sided t-test against zero gives exactly p."""
    pattern = np.linspace(-1, 1, users)
    error = pattern.std(ddof=1) / np.sqrt(users)
    return (pattern + stats.t.isf(p, users - 1) * error) / 10


def gate_of(gains):
    """A gate fitted on arrays of gains, one a user, for the first ranges of prefix length."""
    users = len(gains[0])
    length = np.repeat(LENGTHS[: len(gains)], users)
    return Gate.fitted(np.concatenate(gains), np.tile(np.arange(users), len(gains)), length, users)


@pytest.mark.parametrize(
    ("p_values", "opens"),
    [
        ([0.0495], [True]),
        ([0.0505], [False]),
        ([0.9505], [False]),
        ([0.0245, 0.9], [True, False]),
        ([0.0255, 0.9], [False, False]),
        ([0.0255, 0.0255], [False, False]),
        ([0.0495, 0.0245], [True, True]),  # the second is tested at the whole level
        ([0.0099, 0.5, 0.5, 0.5, 0.5], [True, False, False, False, False]),
        ([0.0101, 0.5, 0.5, 0.5, 0.5], [False] * 5),
        ([0.001, 0.026, 0.002, 0.5, 0.003], [True, False, True, False, True]),
        ([0.001, 0.024, 0.002, 0.5, 0.003], [True, True, True, False, True]),
    ],
)
def test_ranges_open_by_holms_procedure(p_values, opens):
    gate = gate_of([with_p_value(p) for p in p_values])
    assert gate.bins[: len(opens)].tolist() == opens
    assert not gate.bins[len(opens) :].any()  # nothing was tested there
    assert gate.anywhere == any(opens)
    said = [entry["p_value"] for entry in gate_facts(gate)["ranges"]]
    assert [p is not None and p <= LEVEL for p in said[: len(opens)]] == opens
    assert said[len(opens) :] == [None] * (5 - len(opens))


def shares_opened(repeats, draw):
    """Which ranges open, for many draws of gains: bool (repeats, 5)."""
    rng = np.random.default_rng(0)
    return np.array([gate_of(draw(rng)).bins for _ in range(repeats)])


NULLS = {
    "people who differ": lambda rng: rng.normal(0, 0.05, (5, 25)) + rng.normal(0, 0.1, (5, 25)),
    "mostly no difference": lambda rng: rng.choice([-0.5, 0.0, 0.5], (5, 25), p=[0.1, 0.8, 0.1]),
    "three people": lambda rng: rng.choice([-0.5, 0.5], (5, 3)),
}


@pytest.mark.parametrize("null", NULLS)
def test_the_chance_to_open_anywhere_without_a_gain_is_the_family_wise_level(null):
    share = shares_opened(400, NULLS[null]).any(axis=1).mean()
    assert share <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / 400)


def test_without_the_correction_that_chance_is_seen_to_be_larger(monkeypatch):
    monkeypatch.setattr(do_no_harm, "_holm", lambda p_values: p_values)
    assert shares_opened(300, NULLS["people who differ"]).any(axis=1).mean() > 3 * LEVEL


def test_gains_in_some_ranges_do_not_open_the_others():
    def draw(rng):
        return rng.normal(0, 0.1, (5, 25)) + np.array([0.2, 0.2, 0.2, 0.0, 0.0])[:, None]

    bins = shares_opened(400, draw)
    assert bins[:, :3].mean() > 0.99
    share = bins[:, 3:].any(axis=1).mean()
    assert share <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / 400)


def user_gains(means, counts, *, noise, seed=0):
    """A gate for users of given mean gains and numbers of keystrokes, all in one open range."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(len(means)), counts)
    gain = np.repeat(means, counts) + rng.normal(0, noise, len(user))
    for u, mean in enumerate(means):  # exactly the mean asked for
        own = user == u
        gain[own] += mean - gain[own].mean()
    unseen = 200  # users without validation data, who must not be taken for users without a gain
    return Gate.fitted(gain, user, np.full(len(user), 5), len(means) + unseen)


@pytest.mark.parametrize(("keystrokes", "opens"), [(4, True), (40, True), (1000, False)])
def test_a_user_with_little_evidence_follows_the_others(keystrokes, opens):
    means = [0.05, 0.07, 0.09, 0.11, 0.06, 0.08, 0.1, 0.12, 0.05, 0.09, -0.02]
    counts = [200] * 10 + [keystrokes]
    gate = user_gains(means, counts, noise=0.3)
    assert gate.users[:10].all()
    assert gate.users[10] == opens


def test_users_who_differ_by_chance_alone_are_not_told_apart():
    rng = np.random.default_rng(0)
    closed = []
    for _ in range(20):
        user = np.repeat(np.arange(40), 10)
        gain = 0.06 + rng.normal(0, 0.3, len(user))  # means of ten: 0.06 ± 0.095
        gate = Gate.fitted(gain, user, np.full(len(user), 5), 40)
        if gate.anywhere:
            closed.append(np.mean(~gate.users))
    assert len(closed) > 10
    assert np.mean(closed) < 0.02  # by their own means alone, 26 % would be


def test_one_keystroke_of_each_user_tells_nothing_of_the_user():
    gate = user_gains([0.3, 0.2, 0.25, 0.3, 0.2, 0.3, 0.2, -0.1], [1] * 8, noise=0.0)
    assert gate.anywhere
    assert gate.users.all()


def test_a_loss_where_the_static_order_is_kept_anyway_closes_for_nobody():
    loses = np.array([0.1] * 12), np.array([-0.9] * 3 + [0.05] * 9)
    user, length = np.tile(np.arange(12), 40), np.repeat([2, 11], 240)
    noise = np.random.default_rng(0).normal(0, 0.05, 480)
    gate = Gate.fitted(
        np.where(length == 2, *(one[user] for one in loses)) + noise, user, length, 12
    )
    assert gate.bins.tolist() == [True, False, False, False, False]
    assert gate.users.all()


def test_a_user_without_validation_data_follows_the_average():
    gain = with_p_value(0.001)
    for sign in (1, -1):
        gate = Gate.fitted(sign * gain, np.arange(12), np.full(12, 5), 13)
        assert gate.users[12] == (sign > 0)


def test_without_any_keystroke_the_static_order_is_kept():
    nothing = np.zeros(0, int)
    gate = Gate.fitted(np.zeros(0), nothing, nothing, 3)
    assert not gate.anywhere
    assert "kept everywhere" in gate.summary()


# The running check


@settings(max_examples=60, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.2]), st.floats(-1, 1)),
        min_size=1,
        max_size=120,
    ),
    st.integers(1, 4),
)
def test_no_stretch_of_submissions_loses_more_than_is_stated(turns, times):
    """Whoever knows the check's state chooses what to want: `turns` are gains if open, if not."""
    check, served, gains = RunningCheck(), [], []
    for if_open, if_closed in turns * times:
        was_open = check.open
        gains.append(if_open if was_open else if_closed)
        served.append(gains[-1] if was_open else 0.0)
        check.observe(gains[-1], served[-1])
    expected = reference.running_check(gains, served, forgetting=FORGETTING, allowance=ALLOWANCE)
    np.testing.assert_allclose((check.recent, check.drawdown), expected, atol=1e-9)
    lost = np.concatenate([[0.0], np.cumsum(-np.array(served))])
    for begin in range(len(lost)):
        length = np.arange(len(lost) - begin)
        assert (lost[begin:] - lost[begin] <= BUDGET + 1 + ALLOWANCE * length + 1e-9).all()


def test_the_worst_opponent_gets_the_allowance_and_the_budget_and_no_more():
    """It loses all whenever the order is shown, and praises the model while it is not."""
    check, lost, n = RunningCheck(), 0.0, 20_000
    for _ in range(n):
        was_open = check.open
        lost += was_open
        check.observe(-1.0 if was_open else 1.0, -1.0 if was_open else 0.0)
    assert ALLOWANCE * n - 1 < lost <= BUDGET + 1 + ALLOWANCE * n  # the bound is nearly met


def test_the_check_closes_on_recent_harm_and_opens_on_recent_gain():
    check = RunningCheck()
    while check.open:
        check.observe(-0.02, -0.02)
    assert -MARGIN - 0.02 < check.recent < -MARGIN
    hidden = 0
    while not check.open:
        check.observe(0.02, 0.0)
        hidden += 1
    assert 1 <= hidden <= 3
    old = RunningCheck(recent=-MARGIN - 0.1)
    for _ in range(100):
        old.observe(0.0, 0.0)
    assert old.open  # harm of long ago is forgotten
    assert not RunningCheck(recent=5.0, drawdown=BUDGET).open  # and old gains buy no new harm


def test_a_log_is_walked_as_it_is_served():
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(3), 400)
    composition = np.repeat(np.arange(300), 4)
    gain = rng.normal(-0.02, 0.3, len(user))
    begun = np.arange(300) * 2
    is_open, checks = run_checks(gain, composition, user, begun=begun, submitted=begun + 1)
    assert 0.1 < is_open.mean() < 0.9
    for u in range(3):
        check = RunningCheck()
        for c in np.unique(composition[user == u]):
            own = composition == c
            assert (is_open[own] == check.open).all()
            check.observe(gain[own].mean(), gain[own].mean() if check.open else 0.0)
        assert checks[u].recent == pytest.approx(check.recent)
        assert checks[u].drawdown == pytest.approx(check.drawdown)
    nothing = np.zeros(0, int)
    assert run_checks(np.zeros(0), nothing, nothing, begun=nothing, submitted=nothing)[1] == {}


def test_a_composition_is_judged_by_those_that_were_submitted_before_it_began():
    gain, user = np.full(40, -1.0), np.zeros(40, int)
    begun = np.arange(40)
    after = run_checks(gain, begun, user, begun=begun * 10, submitted=begun * 10 + 9)
    at_once = run_checks(gain, begun, user, begun=begun * 10, submitted=np.full(40, 390))
    late = run_checks(gain, begun, user, begun=begun * 10, submitted=begun * 10 + 25)
    shut = after[0].argmin()
    assert 0 < shut < 30
    assert at_once[0].all()  # nothing is known before the last began, nor when it did
    assert late[0].argmin() == shut + 2
    assert at_once[1][0].recent == pytest.approx(after[1][0].recent)


def test_the_levels_are_those_that_the_pages_state():
    assert (LEVEL, FORGETTING, MARGIN, BUDGET, ALLOWANCE) == (0.05, 0.98, 0.1, 1.5, 0.002)
    assert len(PREFIX_BINS) == 5


@pytest.mark.parametrize(
    ("anywhere", "bins", "users", "said"),
    [
        (True, "11111", "111", "re-ranks everywhere"),
        (True, "11111", "", "re-ranks everywhere"),
        (True, "01011", "111", "kept for prefixes of {0}, {2} characters"),
        (True, "11111", "100", "kept for 2 of 3 users"),
        (True, "11110", "110", "kept for prefixes of {4} characters and 1 of 3 users"),
        (False, "11111", "111", "kept everywhere"),
        (True, "00000", "111", "kept everywhere"),
        (True, "11111", "000", "kept everywhere"),
    ],
)
def test_where_the_static_order_is_kept_is_said_in_words(anywhere, bins, users, said):
    flags = [np.array([flag == "1" for flag in flags], bool) for flags in (bins, users)]
    names = [f"{first}–{last}" for first, last in PREFIX_BINS[:-1]] + [f"{PREFIX_BINS[-1][0]}+"]
    told = Gate(anywhere, *flags).summary()
    if "everywhere" in said:
        assert said in told
    else:
        assert told == "static order " + said.format(*names)
    gate = Gate(anywhere, *flags)
    for place, n in enumerate(LENGTHS):
        opens = anywhere and bins[place] == "1"
        assert gate.open_at(int(n)) == opens
        who = np.arange(len(users))
        found = gate.open(who, np.full(len(users), n)).tolist()
        assert found == [opens and flag == "1" for flag in users]


def test_the_noise_of_a_users_mean_gain_is_pooled_within_users():
    rng = np.random.default_rng(0)
    user = np.array([0, 0, 0, 1, 1, 3, 3, 3, 3, 2])
    gain = rng.normal(user, 1.0)
    rows = np.ones(10, bool)
    mean, noise, count = do_no_harm._by_user(gain, user, rows, 5)
    own = [gain[user == u] for u in range(4)]
    pooled = sum(((each - each.mean()) ** 2).sum() for each in own) / (10 - 4)
    assert mean[:4] == pytest.approx([each.mean() for each in own])
    assert noise[:4] == pytest.approx([pooled / len(each) for each in own])
    assert count.tolist() == [3, 2, 1, 4, 0]
    # Nobody has two rows: the noise cannot be told.
    assert np.isinf(do_no_harm._by_user(gain, np.arange(10), rows, 10)[1]).all()
