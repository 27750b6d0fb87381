"""Filters and boosts against their definition, and in a served completer."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import Completer, PrefixIndex, fit_files, fold
from telic.completion.engine import filters
from telic.completion.engine.filters import ANY, NO_VALUE, Contexts, Filter, fill_top_where
from telic.errors import InputError

VALUES = st.sampled_from(["x", "y", None])
ROWS = st.lists(
    st.tuples(st.text("aAb", min_size=1, max_size=3), st.integers(0, 9).map(float), VALUES, VALUES),
    min_size=1,
    max_size=25,
)
ASKED = st.dictionaries(st.sampled_from(["tenant", "language"]), st.sampled_from(["x", "y", "z"]))
FACTORS = st.dictionaries(
    st.sampled_from(["tenant", "language"]),
    st.dictionaries(st.sampled_from(["x", "y", "z"]), st.sampled_from([0.2, 3.0, 50.0])),
)


@settings(max_examples=300)
@given(
    rows=ROWS,
    where=ASKED,
    boost=FACTORS,
    prefix=st.text("ab", max_size=2),
    k=st.integers(1, 4),
    many=st.sampled_from([1, 4, filters.MANY]),
)
def test_the_best_that_pass_a_filter_by_definition(rows, where, boost, prefix, k, many):
    phrases, weights, *columns = zip(*rows, strict=True)
    index, given = PrefixIndex.build_ordered(phrases, weights, apart=np.arange(len(rows)))
    names = ("tenant", "language")
    held = {n: [c[i] for i in given] for n, c in zip(names, columns, strict=True)}
    through = Filter(index, Contexts.of(held), where, boost, unit=0.5)
    best = {}
    for id in range(len(index)):
        values = {name: held[name][id] for name in names}
        if any(values[name] not in (asked, None) for name, asked in where.items()):
            continue
        if not fold(index.phrase(id)).startswith(fold(prefix)):
            continue
        factors = [boost.get(name, {}).get(values[name], 1.0) for name in names]
        score = index.weights_of(id) + 0.5 * np.log(factors).sum()
        text = index.phrase(id)
        best[text] = max(best.get(text, -np.inf), score)
    with patch.object(filters, "MANY", many):
        ids, found = through.top(prefix, k)
    expected = sorted(best.values(), reverse=True)[:k]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert len({index.phrase(id) for id in ids}) == len(ids)
    for id, score in zip(ids, found, strict=True):
        assert best[index.phrase(id)] == pytest.approx(score)
        assert through.find(index.phrase(id)) == id


def test_a_scan_finds_the_heaviest_that_pass_in_order_of_weight():
    rng = np.random.default_rng(3)
    for _ in range(100):
        size, k = rng.integers(1, 200), rng.integers(1, 6)
        weights = rng.integers(0, 8, size)
        codes = rng.choice([NO_VALUE, 0, 1, 2], (2, size)).astype(np.int32)
        wanted = rng.choice([ANY, 0, 1, 2], 2).astype(np.int32)
        boosted = rng.choice([ANY, 0, 1], 2).astype(np.int32)
        lo, hi = sorted(rng.integers(0, size + 1, 2))
        out = np.empty(k, np.int64)
        found = out[: fill_top_where(weights, codes, wanted, boosted, lo, hi, out)].tolist()
        ids = [
            id
            for id in range(lo, hi)
            if all(wanted[c] in (ANY, codes[c, id]) or codes[c, id] == NO_VALUE for c in (0, 1))
            and all(boosted[c] in (ANY, codes[c, id]) for c in (0, 1))
        ]
        assert found == sorted(ids, key=lambda id: (-weights[id], id))[:k]


def test_what_a_boost_below_one_holds_back_hides_nothing():
    held = {"tenant": ["x", "x", "x", "y"]}
    index = PrefixIndex.build(["a1", "a2", "a3", "a4"], [3.0, 3.0, 3.0, 2.5])
    through = Filter(index, Contexts.of(held), boost={"tenant": {"x": 0.2}})
    assert through.top("a", 1)[0].tolist() == [3]


def test_a_rare_value_is_found_in_a_large_range():
    n = 5000
    index = PrefixIndex.build([f"a{i:05}" for i in range(n)], np.arange(n)[::-1].astype(float))
    tenant = ["rare" if i in (4000, 4999) else "common" for i in range(n)]
    through = Filter(index, Contexts.of({"tenant": tenant}), {"tenant": "rare"})
    assert through.top("a", 10)[0].tolist() == [4000, 4999]


ROW = "title,views,language,shop,id\n"


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    file = tmp_path_factory.mktemp("box") / "titles.csv"
    file.write_text(
        ROW + "Tee,9,de,a,1\nTea,8,en,a,2\nTea,5,en,b,3\nTeekanne,4,de,b,4\nTeam,3,,,5\n"
        "green Tee,2,de,b,6\n"
    )
    return fit_files(file)


def found(completer, typed, **options):
    return [(s.text, s.id) for s in completer.suggest(typed, **options)]


def test_suggestions_are_limited_and_equal_texts_shown_once(box, tmp_path):
    box.save(tmp_path / "model")
    for completer in (box, Completer.load(tmp_path / "model")):
        four = [("Tee", "1"), ("Tea", "2"), ("Teekanne", "4"), ("Team", "5")]
        assert found(completer, "te")[:4] == four
        only = found(completer, "tea", where={"tenant": "b"})
        assert only[:2] == [("Tea", "3"), ("Team", "5")]
        assert found(completer, "te", where={"tenant": "b", "language": "de"}) == [
            ("Teekanne", "4"),
            ("Team", "5"),
            ("green Tee", "6"),
        ]
        assert found(completer, "te", where={"tenant": "c"}) == [("Team", "5")]
        german = found(completer, "te", boost={"language": {"en": 0.1}})
        assert german[:4] == [("Tee", "1"), ("Teekanne", "4"), ("Team", "5"), ("Tea", "2")]


def test_boosts_count_beyond_the_prefix_too(tmp_path):
    (tmp_path / "teas.csv").write_text(
        "title,views,language\ngreen tea,9,de\nblack tea,5,en\ncold tea,1,\n"
    )
    completer = fit_files(tmp_path / "teas.csv")
    shown = completer.suggest("tea", boost={"language": {"en": 4.0}})
    assert [s.text for s in shown] == ["black tea", "green tea", "cold tea"]
    expected = [np.log1p(5) + np.log(4), np.log1p(9), np.log1p(1)]
    assert [s.relevance for s in shown] == pytest.approx(expected)


@pytest.mark.parametrize("typed", ["tea", "tae"])
def test_what_a_boost_lifts_is_found_among_many_heavier_ones(tmp_path, typed):
    rows = [f"no {i} tea,{900 + i},{('', 'en')[i % 2]}" for i in range(400)]
    rows += ["old tea,100,de", "raw tea,120,fr"]
    (tmp_path / "teas.csv").write_text("\n".join(["title,views,language", *rows]))
    completer = fit_files(tmp_path / "teas.csv")
    for boost, first in (
        ({"de": 20.0, "fr": 15.0}, ["old tea", "raw tea", "no 399 tea"]),
        ({"de": 9.0, "en": 0.5}, ["no 398 tea", "no 396 tea", "no 394 tea"]),
        ({"de": 20.0, "en": 0.01}, ["old tea", "no 398 tea", "no 396 tea"]),
        ({"en": 0.01}, ["no 398 tea", "no 396 tea", "no 394 tea"]),
    ):
        shown = completer.suggest(typed, boost={"language": boost}, show=3)
        assert [each.text for each in shown] == first


@pytest.mark.parametrize("typed", ["tea", "tae"])
def test_what_a_boost_below_one_holds_back_hides_nothing_that_has_the_word_typed(tmp_path, typed):
    rows = [f"no {i} tea,{900 + i},en" for i in range(100)] + ["old tea,100,de", "raw tea,90,fr"]
    (tmp_path / "teas.csv").write_text("\n".join(["title,views,language", *rows]))
    shown = fit_files(tmp_path / "teas.csv").suggest(typed, boost={"language": {"en": 0.01}})
    assert [each.text for each in shown][:3] == ["old tea", "raw tea", "no 99 tea"]


def test_a_text_in_many_contexts_hides_no_other_that_has_the_word_typed(tmp_path):
    rows = "".join(f"green tea,{100 + i},shop {i}\n" for i in range(60))
    rows += "black tea,5,shop 1\ncold tea,3,shop 2\n"
    (tmp_path / "teas.csv").write_text("title,views,tenant\n" + rows)
    completer = fit_files(tmp_path / "teas.csv")
    for typed in ("tea", "tae"):
        shown = [each.text for each in completer.suggest(typed)]
        assert shown == ["green tea", "black tea", "cold tea"]


def test_a_tenants_own_queries_stay_with_it(box):
    ada = box.user("ada")
    ada.history |= {"Teekanne": 50.0, "Tee mit Milch": 40.0, "Tea": 30.0}

    def texts(**where):
        return [s.text for s in box.compose(ada, where=where).suggest("tee", at=0.0)]

    assert texts(tenant="b")[:2] == ["Teekanne", "Tee mit Milch"]
    # Whatever others have, it is her own query; what they say of it stays theirs.
    typing = box.compose(ada, where={"tenant": "a"})
    own = next(s for s in typing.suggest("tee", at=0.0) if s.text == "Teekanne")
    assert (own.id, own.payload) == (None, None)
    composition = box.compose(ada, where={"tenant": "b"})
    first = composition.suggest("tea", at=0.0)[0]
    assert (first.text, first.id) == ("Tea", "3")
    composition.submit("Tea")
    assert ada.history["Tea"] == 31.0


def two_shops(tmp_path):
    """A box with one text in two shops, popular in the second; ada searched for it, in no shop."""
    (tmp_path / "titles.csv").write_text("title,views,category\ntea,9,a\ntea,10,b\nteam,5,b\n")
    (tmp_path / "log.csv").write_text("user,query,at\nada,tea,2026-03-01\n")
    return fit_files(tmp_path / "titles.csv", tmp_path / "log.csv", min_users=1)


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Two shops, each with a phrase of its own, and one that both have in other categories."""
    file = tmp_path_factory.mktemp("shops") / "list.csv"
    file.write_text(
        "phrase,weight,tenant,category\nSecret Plan,9,a,x\nNo Secret,5,b,x\nNo Secret,5,a,y\n"
    )
    return fit_files(file)


@pytest.mark.parametrize("query", ["Secret Plan", "secret plan", "Nobody's Plan"])
def test_what_other_tenants_have_makes_no_difference_to_an_own_query(shops, query):
    where = {"tenant": "b", "category": "y"}
    user = shops.user("b:bo")
    shops.compose(user, where=where).submit(query)
    for asked in ({"tenant": "b"}, where):
        typing = shops.compose(user, where=asked)
        assert query in [one.text for one in typing.suggest(query[:2].lower(), at=0.0)]


@pytest.mark.parametrize("query", ["No Secret", "no secret", "Nó Secret"])
@pytest.mark.parametrize("where", [{"tenant": "b", "category": "y"}, {"category": "z"}])
@pytest.mark.parametrize("submitted_under", [None, {"tenant": "b"}, {"category": "z"}])
def test_an_own_query_passes_no_filter_that_its_phrase_does_not(
    shops, query, where, submitted_under
):
    user = shops.user("b:bo")
    shops.compose(user, where=submitted_under).submit(query)
    assert shops.compose(user, where=where).suggest("no", at=0.0) == []
    (one,) = shops.compose(user, where={"tenant": "b", "category": "x"}).suggest("no", at=0.0)
    assert one.text == "No Secret"


@pytest.mark.parametrize("query", ["No Secret", "no secret", "Nó Secret"])
def test_an_own_query_obeys_filters_where_spellings_are_not_merged(shops, query):
    apart = replace(shops, merged=False)
    user = apart.user("b:bo")
    user.history[query] = 3.0
    under = {"tenant": "b", "category": "y"}
    assert apart.compose(user, where=under).suggest("no", at=0.0) == []
    shown = apart.compose(user, where={"tenant": "b"}).suggest("no", at=0.0)
    assert query in [one.text for one in shown]


@pytest.mark.parametrize("boost", [{}, {"category": {"a": 9.0}}, {"category": {"b": 9.0}}])
def test_a_users_own_query_in_several_contexts_is_shown_once_and_boosted(tmp_path, boost):
    completer = two_shops(tmp_path)
    shown = completer.suggest("te", user="ada", boost=boost)
    assert [each.text for each in shown] == ["tea", "team"]
    anybodys = completer.suggest("te", boost=boost)[0]
    assert (shown[0].relevance, shown[0].id) == (anybodys.relevance + np.log(2), anybodys.id)


def test_what_was_changed_while_it_serves_is_boosted_all_the_same(tmp_path):
    titles = "title,views,category\ntea,9,a\nteam,8,b\ngreen tea,7,a\ngreen team,6,b\n"
    (tmp_path / "titles.csv").write_text(titles)
    completer, boost = fit_files(tmp_path / "titles.csv"), {"category": {"b": 9.0}}
    expected = completer.suggest("te", boost=boost)
    assert [each.text for each in expected] == ["team", "tea", "green team", "green tea"]
    for phrase, popularity in (("team", 8.0), ("green team", 6.0)):
        completer.live.put(phrase, popularity)
    shown = completer.suggest("te", boost=boost)
    assert [each.text for each in shown] == [each.text for each in expected]
    assert [each.relevance for each in shown] == [each.relevance for each in expected]


@pytest.mark.parametrize("where", [None, {"category": "b"}])
def test_words_find_what_was_changed_or_added_and_passes_the_filter(tmp_path, where):
    """What is added since is limited to nothing; a phrase that was there stays in its context."""
    titles = "title,views,category\ncup,9,a\ngreen team,6,b\nred team,5,a\n"
    (tmp_path / "titles.csv").write_text(titles)
    completer = fit_files(tmp_path / "titles.csv")
    for phrase, popularity in (("red team", 70.0), ("green team", 60.0), ("new team", 50.0)):
        completer.live.put(phrase, popularity)
    shown = [each.text for each in completer.suggest("tea", where=where)]
    assert shown == ["red team"] * (where is None) + ["green team", "new team"]


def test_a_users_own_query_that_was_changed_is_boosted(tmp_path):
    completer = two_shops(tmp_path)
    ada = completer.user("ada")
    ada.history["team"] = 1.0
    completer.live.put("team", 5.0)
    shown = completer.compose(ada, boost={"category": {"b": 9.0}}).suggest("team", at=0.0)
    assert shown[0].relevance == pytest.approx(np.log(6) + np.log(9) + np.log(2))


def test_what_cannot_be_asked_is_named(box, tmp_path):
    with pytest.raises(InputError, match="filter 'colour': the phrases have no such context"):
        box.suggest("t", where={"colour": "red"})
    with pytest.raises(InputError, match="no such context"):
        box.suggest("t", boost={"colour": {"red": 2.0}})
    with pytest.raises(InputError, match="filter 'language' is 3, expected a value as text"):
        box.suggest("t", where={"language": 3})
    with pytest.raises(InputError, match=r"filter is \['language'\], expected values by context"):
        box.suggest("t", where=["language"])
    with pytest.raises(InputError, match=r"boost is .*, expected factors by context and value"):
        box.suggest("t", boost=["language"])
    with pytest.raises(InputError, match="boost of 'language' has the value 3, expected text"):
        box.suggest("t", boost={"language": {3: 2.0}})
    with pytest.raises(InputError, match="boost of 'de' is '3', expected a number > 0"):
        box.suggest("t", boost={"language": {"de": "3"}})
    with pytest.raises(InputError, match="boost of 'de' is 0"):
        box.suggest("t", boost={"language": {"de": 0}})
    with pytest.raises(InputError, match="boost of 'language' is 'de', expected factors by value"):
        box.suggest("t", boost={"language": "de"})
    with pytest.raises(InputError, match="n is 0, expected a whole number >= 1"):
        replace(box, n=0)
    (tmp_path / "a.txt").write_text("tea\n")
    with pytest.raises(InputError, match="this model have no contexts"):
        fit_files(tmp_path / "a.txt").suggest("t", where={"language": "de"})


def test_beside_a_composition_log_a_phrase_has_one_context(make_table, tmp_path):
    log, titles = tmp_path / "log.parquet", tmp_path / "titles.csv"
    pq.write_table(make_table(users=3, compositions=12), log)
    titles.write_text(ROW + "new york,3,en,a,1\nnew ulm,2,de,a,2\n")
    completer = fit_files(log, titles, min_users=1)
    shown = [s.text for s in completer.suggest("new ", where={"language": "de"})]
    assert "new ulm" in shown
    assert "new jersey" in shown
    assert "new york" not in shown
    titles.write_text(ROW + "new york,3,en,a,1\nnew york,3,de,a,2\n")
    with pytest.raises(InputError, match=r"titles\.csv: row 2: phrase 'new york' has the language"):
        fit_files(log, titles, min_users=1)


def test_boosts_of_too_many_values_are_refused():
    index, _ = PrefixIndex.build_ordered(["tea"], np.zeros(1), apart=np.zeros(1, int))
    contexts = Contexts.of({name: ["0"] for name in "abc"})
    boost = {name: {str(value): 2.0 for value in range(8)} for name in "abc"}
    with pytest.raises(InputError, match="729 combinations of values, over 256"):
        Filter(index, contexts, None, boost)


def test_boosts_of_as_many_values_as_may_be_are_taken(monkeypatch):
    index, _ = PrefixIndex.build_ordered(["tea"], np.zeros(1), apart=np.zeros(1, int))
    contexts = Contexts.of({"a": ["0"]})
    monkeypatch.setattr(filters, "MOST_SETS", 3)
    boost = {"a": {"0": 2.0, "1": 2.0}}
    assert Filter(index, contexts, None, boost).top("t", 1)[1].tolist() == [np.log(2.0)]
    boost["a"]["2"] = 2.0
    with pytest.raises(InputError, match="4 combinations of values, over 3"):
        Filter(index, contexts, None, boost)
