"""Lists that the prefix leaves room in are filled by words, in a served completer."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.completion import Completer, PrefixIndex, fit_files
from telic.completion.box.word_and_typo_matches import OwnWords
from telic.completion.engine.word_index import MAX_TOKENS, WordIndex
from telic.completion.engine.words import words_of
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
    ada.history |= {"my phone is broken": 1.0, "Apple iPhone 14 Pro": 3.0}
    assert texts(personal.compose(ada).suggest("phone", at=0.0))[0] == "my phone is broken"
    assert texts(personal.compose(ada).suggest("iphone 14", at=0.0)) == [
        "Apple iPhone 14 Pro",
        "Apple iPhone 14",
    ]


@given(
    own=st.lists(st.text("ab c", min_size=1, max_size=8), max_size=6),
    typed=st.text("ab c", max_size=6),
)
def test_own_words_by_their_definition(own, typed):
    tokens = words_of(typed)
    expected = [
        i
        for i, text in enumerate(own)
        if tokens and all(any(w.startswith(t) for w in words_of(text)) for t in tokens)
    ]
    assert OwnWords([text.encode() for text in own]).matching(tokens) == expected


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
