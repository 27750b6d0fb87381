import dataclasses
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.completion import fold
from telic.data.compositions import read_compositions
from telic.data.contracts import COMPOSITIONS, SIMULATED
from telic.errors import InputError
from telic.simulate import SETTINGS, Catalogue, geonames_catalogue, marginals, simulate_typists
from telic.simulate.log_marginals import PUBLISHED
from telic.simulate.typist_parameters import TypistParameters
from telic.simulate.typos_and_backspaces import keystroke_plan


@pytest.fixture(scope="module")
def places():
    return geonames_catalogue()


@pytest.fixture(scope="module")
def logs(places):
    return {
        setting: simulate_typists(places, users=40, compositions=60, setting=setting)
        for setting in SETTINGS
    }


@pytest.mark.parametrize("setting", SETTINGS)
def test_logs_keep_the_contract(logs, setting):
    table = logs[setting]
    for field in table.schema:
        assert field == COMPOSITIONS.field(field.name)
    assert table.schema.metadata[SIMULATED] == b"true"
    made_by = json.loads(table.schema.metadata[b"telic.typists"])
    assert made_by["setting"] == setting
    assert made_by["seed"] == 0
    assert made_by["parameters"]["attention"] == SETTINGS[setting].attention
    log = read_compositions(table)
    assert log.simulated
    assert len(log) == 40 * 60
    assert len(log.users) == 40


@pytest.mark.parametrize("setting", SETTINGS)
def test_times_prefixes_and_selections_are_coherent(logs, setting):
    for row in logs[setting].slice(0, 400).to_pylist():
        keys = row["keystrokes"]
        at = [key["at"] for key in keys] + [row["submitted_at"]]
        assert all(a < b for a, b in pairwise(at))
        assert keys[0]["prefix"]
        for key in keys:
            assert all(fold(text).startswith(key["prefix"]) for text in key["suggestions"])
        for a, b in pairwise(keys):
            assert abs(len(a["prefix"]) - len(b["prefix"])) == 1
        if row["selected"] is not None:
            assert keys[-1]["suggestions"][row["selected"] - 1] == row["query"]
        elif setting != "inattentive":
            assert keys[-1]["prefix"] == fold(row["query"])


def test_compositions_of_a_user_follow_each_other_over_150_days(logs):
    log = read_compositions(logs["calibrated"])
    begin = log.at[log.keystroke_start[:-1]]
    for u in range(40):
        mine = log.user == u
        assert (begin[mine][1:] > log.submitted_at[mine][:-1]).all()
        assert 140 < (begin[mine][-1] - begin[mine][0]) / 86_400e6 < 170


def test_lists_are_the_heaviest_phrases_of_the_prefix(places, logs):
    folded = np.array([fold(phrase) for phrase in places.phrases])
    weight = dict(zip(places.phrases, places.weights, strict=True))
    checked = set()
    for row in logs["readers"].slice(0, 30).to_pylist():
        for key in row["keystrokes"]:
            prefix = key["prefix"]
            if prefix in checked:
                continue
            checked.add(prefix)
            matches = np.flatnonzero(np.char.startswith(folded, prefix))
            best = np.sort(places.weights[matches])[::-1][:10]
            assert [weight[text] for text in key["suggestions"]] == best.tolist()


def test_equal_seeds_give_equal_logs(places):
    first, again, other = (
        simulate_typists(places, users=3, compositions=5, seed=seed) for seed in (7, 7, 8)
    )
    assert first.equals(again, check_metadata=True)
    assert not first.equals(other)


def test_a_log_of_many_compositions_is_made_in_blocks(places, monkeypatch):
    whole = simulate_typists(places, users=5, compositions=7, seed=0)
    monkeypatch.setattr("telic.simulate.typists.AT_ONCE", 8)
    blocks = simulate_typists(places, users=5, compositions=7, seed=0)
    assert (whole["user"].num_chunks, blocks["user"].num_chunks) == (1, 5)
    assert blocks.equals(whole, check_metadata=True)


def test_attention_changes_neither_intents_nor_starts(places):
    never, always = (
        simulate_typists(places, users=5, compositions=20, attention=a) for a in (0.0, 1.0)
    )
    assert never["query"] == always["query"]
    for a, b in zip(never["keystrokes"].to_pylist(), always["keystrokes"].to_pylist(), strict=True):
        assert a[0]["at"] == b[0]["at"]
    assert never["selected"].null_count == len(never)
    assert always["selected"].null_count < len(always) / 2


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_calibrated_meets_the_published_marginals(places, seed):
    reached = marginals(simulate_typists(places, users=100, compositions=100, seed=seed))
    for name, published in PUBLISHED.items():
        if published.reached is not None:
            low, high = published.reached
            assert low <= reached[name] <= high, (name, reached[name])
    # A long tail: a log-normal of the same median and ninetieth percentile would stop earlier.
    assert reached["dwell_p99"] > 5 * reached["dwell_p50"]


def test_two_speed_groups(logs):
    log = read_compositions(logs["inattentive"])
    of = np.repeat(log.user, np.diff(log.keystroke_start))
    dwell = np.diff(log.at, append=log.at[-1])
    within = np.ones(len(of), bool)
    within[log.keystroke_start[1:] - 1] = False
    medians = [np.median(dwell[within & (of == u)]) / 1e6 for u in range(40)]
    fast, slow = SETTINGS["inattentive"].key_seconds
    nearest_slow = np.abs(np.log(medians) - np.log(slow)) < np.abs(np.log(medians) - np.log(fast))
    assert 2 <= nearest_slow.sum() <= 16


def _without_lists(table):
    return [
        (row["query"], row["submitted_at"], [(k["at"], k["prefix"]) for k in row["keystrokes"]])
        for row in table.to_pylist()
    ]


@pytest.mark.parametrize(("setting", "independent"), [("inattentive", True), ("calibrated", False)])
def test_only_the_inattentive_are_the_same_whatever_is_shown(places, setting, independent):
    short, long = (
        _without_lists(
            simulate_typists(places, users=5, compositions=30, setting=setting, candidates=k)
        )
        for k in (1, 10)
    )
    assert (short == long) is independent


def link(table):
    """t statistic: dwell on earlier lists that show the wanted query high, against others."""
    log = read_compositions(table)
    dwell = np.diff(log.at, append=0) / 1e6
    last = log.keystroke_start[1:] - 1
    of = np.repeat(np.arange(len(log)), np.diff(log.keystroke_start))
    listed_in = np.repeat(np.arange(len(of)), np.diff(log.list_start))
    position = np.arange(len(listed_in)) - log.list_start[listed_in]
    high = np.zeros(len(of), bool)
    high[listed_in[(log.shown == log.query[of[listed_in]]) & (position < 3)]] = True
    earlier = ~np.isin(np.arange(len(of)), last) & (np.diff(log.list_start) > 0)
    logs = np.log(dwell, where=earlier, out=np.zeros(len(of)))
    # Within each user, since speeds differ and so may what people want.
    user = log.user[of]
    total = np.bincount(user, weights=logs * earlier) / np.bincount(user, weights=earlier)
    residual = logs - total[user]
    a, b = residual[earlier & high], residual[earlier & ~high]
    return (a.mean() - b.mean()) / np.sqrt(a.var() / len(a) + b.var() / len(b))


def test_a_long_dwell_says_read_and_not_wanted_only_where_planted(logs):
    assert abs(link(logs["inattentive"])) < 4
    assert link(logs["readers"]) < -15


def test_readers_choose_from_below_what_they_read_before(logs):
    reached = marginals(logs["readers"])
    assert reached["shown_but_skipped"] > 0.4
    assert reached["mrr_last"] < 0.7


plain = st.text(alphabet="ab ", min_size=1, max_size=8)


@given(plain, plain, st.integers(1, 12), st.integers(0, 2), st.sampled_from("abz"), st.booleans())
def test_plans_change_one_character_at_a_time(target, previous, typo, late, wrong, edit):
    plan = keystroke_plan(target, previous if edit else "", typo, late, wrong)
    assert plan[0]
    assert plan[-1] == target
    text = previous if edit and previous != target and len(previous) > 1 else ""
    for prefix in plan:
        longer, shorter = max(text, prefix, key=len), min(text, prefix, key=len)
        assert longer[:-1] == shorter
        text = prefix


@pytest.mark.parametrize(
    "bad",
    [{"attention": -0.1}, {"habit_share": 1.1}, {"depth": (0.0, 0.0)}, {"typo_rate": float("nan")}],
)
def test_impossible_typists_are_named(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        TypistParameters(**bad)


def test_parameters_can_be_swept(places):
    careful = dataclasses.replace(SETTINGS["calibrated"], typo_rate=0.0, edit_share=0.0)
    table = simulate_typists(places, users=3, compositions=10, setting=careful)
    assert marginals(table)["backspaces"] == 0
    made_by = json.loads(table.schema.metadata[b"telic.typists"])
    assert made_by["setting"] == "custom"
    assert made_by["parameters"]["typo_rate"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setting": "asleep"}, "expected one of calibrated, inattentive, readers"),
        ({"attention": 1.5}, "from 0 to 1"),
        ({"attention": 0.5, "setting": "readers"}, "only in 'calibrated'"),
        ({"users": 0}, "users is 0"),
        ({"compositions": 0}, "compositions is 0"),
        ({"candidates": 0}, "candidates is 0"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(InputError, match=message):
        simulate_typists(Catalogue(["tea"], np.ones(1)), **options)


def test_phrases_too_long_to_type_are_named():
    with pytest.raises(InputError, match="has 201 characters"):
        simulate_typists(Catalogue(["x" * 201], np.ones(1)))


def test_a_refined_query_that_the_catalogue_holds_can_be_chosen():
    phrases = ["bern", "bern weather", "bern map"]
    table = simulate_typists(Catalogue(phrases, np.ones(3)), users=20, compositions=20)
    rows = table.to_pylist()
    assert any(row["query"] == "bern hotels" for row in rows)
    assert not any(row["selected"] for row in rows if row["query"] not in phrases)
    wanted = [row["selected"] is not None for row in rows if row["query"] == "bern weather"]
    assert np.mean(wanted) > 0.9


def test_the_data_card_lists_every_parameter_and_marginal():
    card = (Path(__file__).parents[2] / "docs" / "measured" / "data-card-typists.md").read_text(
        encoding="utf-8"
    )
    for field in dataclasses.fields(TypistParameters):
        assert field.metadata["source"] in card
        assert f"`{field.name}`" in card
    for name in marginals(simulate_typists(Catalogue(["tea"], np.ones(1)), users=2)):
        assert f"| `{name}` |" in card
