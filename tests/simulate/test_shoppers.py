"""The second family of simulated people keeps its marginals, its form and its controls."""

import json

import numpy as np
import pytest

from telic.data.compositions import read_compositions
from telic.data.contracts import SIMULATED
from telic.errors import InputError
from telic.simulate import marginals
from telic.simulate.log_marginals import PUBLISHED
from telic.simulate.shoppers import (
    OF_A_BRAND,
    SHOPPERS,
    SHOWN,
    _Shop,
    goods_catalogue,
    simulate_shoppers,
)


@pytest.fixture(scope="module")
def logs():
    size = {"users": 20, "compositions": 40}
    return {name: simulate_shoppers(setting=name, seed=7, **size) for name in SHOPPERS}


@pytest.mark.slow
def test_the_calibrated_ones_have_the_published_marginals():
    logs = [simulate_shoppers(users=40, compositions=40, seed=seed) for seed in (7, 8, 9)]
    found = [marginals(log) for log in logs]
    for name, one in PUBLISHED.items():
        if one.reached:
            low, high = one.reached
            assert low <= np.mean([log[name] for log in found]) <= high, name


@pytest.mark.parametrize("setting", SHOPPERS)
def test_logs_keep_the_contract(logs, setting):
    table = logs[setting]
    log = read_compositions(table)
    assert (len(log), len(log.users)) == (800, 20)
    assert log.simulated
    assert json.loads(table.schema.metadata[b"telic.shoppers"])["setting"] == setting
    assert table.schema.metadata[SIMULATED] == b"true"
    goods = set(goods_catalogue().phrases)
    for row in table.to_pylist()[:200]:
        assert row["query"] in goods
        shown = row["keystrokes"][-1]["suggestions"]
        if row["selected"]:
            assert shown[row["selected"] - 1] == row["query"]
        times = [key["at"] for key in row["keystrokes"]] + [row["submitted_at"]]
        assert times == sorted(times)


def test_lists_begin_at_the_second_character_match_any_word_and_vary_brands(logs):
    for row in logs["calibrated"].to_pylist()[:100]:
        for key in row["keystrokes"]:
            shown = key["suggestions"]
            assert len(shown) <= (SHOWN if len(key["prefix"]) > 1 else 0)
            assert all(f" {key['prefix']}" in f" {phrase}" for phrase in shown)
            brands = [phrase.split()[0] for phrase in shown]
            assert max(map(brands.count, brands), default=0) <= OF_A_BRAND
    lists = [k["suggestions"] for r in logs["calibrated"].to_pylist() for k in r["keystrokes"]]
    assert any(not shown[0].startswith(shown[-1][:2]) for shown in lists if shown)


def test_a_list_is_of_the_best_known_goods_with_a_word_that_begins_so():
    goods, rng = goods_catalogue(), np.random.default_rng(3)
    shop = _Shop(goods, rng)
    for phrase in rng.choice(goods.phrases, 100):
        begin = rng.integers(len(phrase) - 2)
        prefix = phrase[begin : begin + rng.integers(2, 9)]
        expected, of_brand = [], dict.fromkeys(shop._brand, 0)
        for item in shop._order:
            text, brand = goods.phrases[item], shop._brand[item]
            if f" {prefix}" in f" {text}" and of_brand[brand] < OF_A_BRAND:
                of_brand[brand] += 1
                expected.append(item)
        assert shop.shown(prefix) == expected[:SHOWN]


def test_nobody_looks_where_nobody_looks(logs):
    """No list is taken from, and a dwell says nothing of where the wanted goods stood."""
    table = logs["inattentive"]
    assert table["selected"].null_count == len(table)
    dwells: dict[bool, list[float]] = {True: [], False: []}
    for row in table.to_pylist():
        times = [key["at"] for key in row["keystrokes"]] + [row["submitted_at"]]
        for key, begin, end in zip(row["keystrokes"], times, times[1:], strict=False):
            dwells[row["query"] in key["suggestions"]].append((end - begin).total_seconds())
    there, absent = (np.array(dwells[listed]) for listed in (True, False))
    error = np.hypot(there.std() / len(there) ** 0.5, absent.std() / len(absent) ** 0.5)
    assert abs(there.mean() - absent.mean()) < 4 * error


def test_whoever_reads_lists_dwells_longer_where_what_is_wanted_is_not_there(logs):
    for name in ("calibrated", "thorough"):
        found: dict[bool, list[float]] = {True: [], False: []}
        for row in logs[name].to_pylist():
            times = [key["at"] for key in row["keystrokes"]]
            for key, begin, end in zip(row["keystrokes"], times, times[1:], strict=False):
                if len(key["suggestions"]) == SHOWN:
                    listed = row["query"] in key["suggestions"]
                    found[listed].append((end - begin).total_seconds())
        assert np.mean(found[False]) > np.mean(found[True]) + 0.03


def test_tastes_and_the_last_search_say_what_is_wanted_but_where_all_are_alike(logs):
    def share_repeated(table):
        nouns = [phrase.split()[2] for phrase in table["query"].to_pylist()]
        users = table["user"].to_pylist()
        pairs = zip(users, users[1:], nouns, nouns[1:], strict=False)
        same = [a == b for u, v, a, b in pairs if u == v]
        return np.mean(same)

    assert share_repeated(logs["calibrated"]) > 0.3
    assert share_repeated(logs["all alike"]) < 0.15


def test_equal_seeds_give_equal_logs():
    one, two, other = (simulate_shoppers(users=3, compositions=4, seed=s) for s in (1, 1, 2))
    assert one.equals(two)
    assert not one.equals(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setting": "readers"}, "setting is 'readers', expected one of calibrated, inattentive"),
        ({"users": 0}, "users is 0, expected a whole number >= 1"),
        ({"compositions": -1}, "compositions is -1, expected a whole number >= 1"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        simulate_shoppers(**options)
