"""Lists that the prefix leaves room in are filled by words, in a served completer."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.completion import Completer, PrefixIndex, fit_files
from telic.completion.engine.few_words import FewWords
from telic.completion.engine.rules import Synonyms
from telic.completion.engine.typos import QUARTER_EDIT
from telic.completion.engine.word_index import MAX_TOKENS, WordIndex
from telic.errors import InputError

TITLES = {
    "Apple iPhone 14": 50,
    "Apple iPhone 14 Pro": 40,
    "iPhone case": 5,
    "San Francisco": 90,
    "Santa Fe": 3,
    "Sana": 1,
    "Nokia 3310": 70,
    "Sannai": 2,
}


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    file = tmp_path_factory.mktemp("box") / "titles.csv"
    rows = [f"{title},{views},/{i}" for i, (title, views) in enumerate(TITLES.items())]
    file.write_text("\n".join(["title,views,url", *rows]))
    return fit_files(file)


def texts(suggestions):
    return [suggestion.text for suggestion in suggestions]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("iphone", ["iPhone case", "Apple iPhone 14", "Apple iPhone 14 Pro"]),
        ("14 iph", ["Apple iPhone 14", "Apple iPhone 14 Pro"]),
        ("sna fran", ["San Francisco"]),
        ("nokai", ["Nokia 3310"]),
        ("xokia", ["Nokia 3310"]),
        ("sana", ["Sana", "San Francisco", "Santa Fe", "Sannai"]),
        ("san", ["San Francisco", "Santa Fe", "Sannai", "Sana"]),
        ("frnacicso", ["San Francisco"]),
        ("qqq", []),
    ],
)
def test_what_was_typed_comes_first_then_its_words_then_what_was_meant(box, typed, found):
    assert texts(box.suggest(typed)) == found


def test_a_slip_of_the_finger_costs_less_than_another_letter(tmp_path):
    """The y lies beside the u, not beside the o; the i beside both."""
    (tmp_path / "titles.csv").write_text("title,views\nNobel hats,3600\nNubel hats,1200\n")
    box = fit_files(tmp_path / "titles.csv")
    assert texts(box.suggest("nybel")) == ["Nobel hats", "Nubel hats"]
    replace(box, keyboard="qwerty").save(tmp_path / "model")
    keyed = Completer.load(tmp_path / "model")
    assert texts(keyed.suggest("nybel")) == ["Nubel hats", "Nobel hats"]
    for typed in ("nibel", "nxbel"):
        assert texts(keyed.suggest(typed)) == ["Nobel hats", "Nubel hats"]
    with pytest.raises(InputError, match="keyboard is 'dvorak', expected qwerty, qwertz, azerty"):
        replace(box, keyboard="dvorak")


def test_a_suggestion_beyond_the_prefix_is_whole(box, tmp_path):
    box.save(tmp_path / "model")
    for completer in (box, Completer.load(tmp_path / "model")):
        first, second, _ = completer.suggest("iphone")
        assert [first.static_position, second.static_position] == [1, 2]
        assert second.payload == {"url": "/0"}
        assert second.explain().reasons == {}
        assert second.relevance == pytest.approx(np.log1p(50))
        assert texts(completer.suggest("iphone", show=2)) == ["iPhone case", "Apple iPhone 14"]
        assert len(completer.suggest("")) == len(TITLES)
    for show in (-1, 1.5, "3", None):
        with pytest.raises(InputError, match=f"show is {show!r}, expected a whole number >= 0"):
            box.suggest("iphone", show=show)


def test_a_submission_of_one_teaches_history_and_feedback_goes_on(box):
    ada = box.user("ada")
    composition = box.compose(ada)
    composition.suggest("iphone", at=0.0)
    composition.suggest("iphone 1", at=5.0)
    composition.submit("Apple iPhone 14")
    assert ada.history == {"Apple iPhone 14": 1.0}
    assert ada.previous == "Apple iPhone 14"


def test_own_queries_are_found_by_their_words_and_weigh_more(box):
    personal = replace(box, relevance=replace(box.relevance, personal=5.0))
    ada = personal.user("ada")
    ada.history |= {"my phone is broken": 9.0, "Apple iPhone 14 Pro": 3.0}
    assert texts(personal.compose(ada).suggest("phone", at=0.0))[0] == "my phone is broken"
    assert texts(personal.compose(ada).suggest("iphone 14", at=0.0)) == [
        "Apple iPhone 14 Pro",
        "Apple iPhone 14",
    ]


@given(
    own=st.lists(st.text("ab c!東京", min_size=1, max_size=9), max_size=6, unique=True),
    typed=st.text("ab c東", max_size=6),
    typos=st.integers(0, 2),
)
def test_a_short_list_is_searched_as_a_long_one_is(own, typed, typos):
    own = [text for text in own if text.strip()]
    index = PrefixIndex.build(own, np.zeros(len(own)))
    ids, scores = WordIndex.build(index).top(index, typed, len(own), typos=typos)
    words = FewWords([index.folded(id) for id in range(len(own))])
    places, costs = words.matching(typed, typos=typos)
    assert places.tolist() == sorted(ids.tolist())
    found = dict(zip(places.tolist(), costs.tolist(), strict=True))
    assert [-QUARTER_EDIT * found[id] for id in ids.tolist()] == pytest.approx(scores.tolist())


def test_what_the_prefix_finds_stays_as_it_is_without_words(make_table, tmp_path):
    """So the evaluation, which looks at the prefix alone, is a lower bound of what is served."""
    file = tmp_path / "log.parquet"
    pq.write_table(make_table(users=3, compositions=12), file)
    with_words = fit_files(file, min_users=1)
    without = fit_files(file, min_users=1, words=False)
    longer = 0
    for user in (None, "user 1"):
        one, two = (c.compose(c.user(user)) for c in (with_words, without))
        for at, prefix in enumerate(["n", "ne", "new y", "york", "parsi", "new y"]):
            more, less = (texts(c.suggest(prefix, at=float(at))) for c in (one, two))
            assert more[: len(less)] == less
            longer += len(more) > len(less)
    assert longer


def test_words_beyond_the_eighth_are_not_looked_for(box):
    words = ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert len(words) == MAX_TOKENS
    index = PrefixIndex.build([" ".join(words)], [1])
    found = WordIndex.build(index)
    for typed, ids in (
        ([*words[1:], "a"], [0]),
        ([*words[1:], "z"], []),
        ([*words[1:], "a", "z"], [0]),
    ):
        assert found.top(index, " ".join(typed), typos=0)[0].tolist() == ids


def test_a_short_list_shows_no_typo_before_what_was_typed(tmp_path):
    rows = ["xx tea pot,5", "yy tea cup,4", "zz tea bag,3", "qq ten jar,1000000"]
    (tmp_path / "titles.csv").write_text("\n".join(["title,views", *rows]))
    box = fit_files(tmp_path / "titles.csv")
    for show in (1, 2, 3):
        found = ["xx tea pot", "yy tea cup", "zz tea bag"][:show]
        assert texts(box.suggest("tea", show=show)) == found


@pytest.mark.parametrize(
    ("phrase", "mistyped"),
    [
        ("ซื้อโทรศัพท์มือถือราคาถูกที่สุดในกรุงเทพ", "โทรศัพท์มอืถือราคาถูกที่สุด"),
        ("访问中华人民共和国中央人民政府网站首页入口", "中华人民共国中央人民政府网站首页"),
        ("会社telecommunication株式有限会社東京本店", "telecommunciation株式有限会社東京"),
    ],
)
def test_any_part_of_a_text_without_spaces_is_found_however_long(tmp_path, phrase, mistyped):
    (tmp_path / "titles.csv").write_text(f"title,views\n{phrase},1\nอ东x会,9\n")
    box = fit_files(tmp_path / "titles.csv")
    begins = [4, 11] if phrase.startswith("ซ") else [2]
    for begin in begins:
        for end in range(begin + 12, len(phrase) + 1):
            for typed in (phrase[begin:end], f"{phrase[begin:end]} "):
                assert texts(box.suggest(typed)) == [phrase]
    found = box.suggest(mistyped)
    assert (found[0].text, found[0].relevance) == (
        phrase,
        pytest.approx(np.log(2) - 4 * QUARTER_EDIT),
    )
    box.live.put(f"再{phrase}", 100)
    assert texts(box.suggest(phrase[begins[0] :]))[0] == f"再{phrase}"


def test_own_queries_are_found_mistyped_and_in_the_middle_of_a_text_without_spaces(box):
    personal = replace(box, relevance=replace(box.relevance, personal=5.0))
    ada = personal.user("ada")
    ada.history |= {"my own phone": 1.0, "上海小笼包": 1.0, "San Francisco": 1.0}
    for typed, found in (
        ("my onw", "my own phone"),
        ("小笼", "上海小笼包"),
        ("sna fran", "San Francisco"),
    ):
        composition = personal.compose(ada)
        first = composition.suggest(typed, at=0.0)[0]
        assert first.text == found
    own = np.log1p(90) + 5 * np.log(2) - 4 * QUARTER_EDIT
    assert first.relevance == pytest.approx(own)


@pytest.mark.parametrize("typed", ["alpha beta", "beta alpha"])
@pytest.mark.parametrize("where", [None, {"category": "small"}])
def test_a_rare_match_among_many_candidates_is_found(tmp_path, monkeypatch, typed, where):
    rows = [f"{word} {i},{100 + i},big" for word in ("alpha", "beta") for i in range(40)]
    rows += ["gamma alpha beta,5,small", "delta alpha,4,small"]
    (tmp_path / "titles.csv").write_text("\n".join(["title,views,category", *rows]))
    monkeypatch.setattr("telic.completion.engine.word_index.BUDGETS", (2, 5, 10))
    box = fit_files(tmp_path / "titles.csv")
    assert texts(box.suggest(typed, where=where)) == ["gamma alpha beta"]
    assert texts(box.suggest("alpha", where={"category": "small"})) == [
        "gamma alpha beta",
        "delta alpha",
    ]


def test_what_is_said_in_several_ways_counts_as_the_best_of_them(tmp_path):
    (tmp_path / "titles.csv").write_text("title,views\nmy television set tvx,9\n")
    box = replace(fit_files(tmp_path / "titles.csv"), synonyms=Synonyms((("tv", "television"),)))
    (found,) = box.suggest("television set")
    assert found.relevance == pytest.approx(np.log1p(9))  # in “tv set” a word is only begun


def test_typos_are_looked_for_where_few_begin_with_what_was_typed(tmp_path):
    file = tmp_path / "titles.csv"
    for begun, found in ((2, ["tea 0", "tea 1", "ten jars"]), (3, ["tea 0", "tea 1", "tea 2"])):
        rows = [f"tea {i},{9 - i}" for i in range(begun)]
        file.write_text("\n".join(["title,views", *rows, "ten jars,99"]))
        assert texts(fit_files(file).suggest("tea")) == found


def test_other_ways_to_say_it_have_no_typos(tmp_path):
    (tmp_path / "titles.csv").write_text("title,views\nmy televisoin set,9\n")
    box = replace(fit_files(tmp_path / "titles.csv"), synonyms=Synonyms((("tv", "television"),)))
    assert texts(box.suggest("television")) == ["my televisoin set"]
    assert texts(box.suggest("tv")) == []


def test_a_text_in_several_contexts_comes_once_where_typos_are_boosted(tmp_path):
    rows = ["stone gardel,2,a", "stone gardel,900,b"]
    rows += [f"rock gardex {i},{500 + i},b" for i in range(60)]
    (tmp_path / "titles.csv").write_text("\n".join(["title,views,category", *rows]))
    box = fit_files(tmp_path / "titles.csv")
    found = texts(box.suggest("gardel", boost={"category": {"a": 1e5}}))
    assert (found[0], len(set(found))) == ("stone gardel", len(found))


def test_no_list_goes_on_behind_candidates_that_left_phrases_of_the_prefix_out(tmp_path):
    file = tmp_path / "titles.csv"
    file.write_text("title,views\nTea,9\nTea cup,8\nTeapot,7\nGreen tea,6\n")
    for n, found in ((2, ["Tea", "Tea cup"]), (4, ["Tea", "Tea cup", "Teapot", "Green tea"])):
        assert texts(fit_files(file, n=n).suggest("tea", show=10)) == found
