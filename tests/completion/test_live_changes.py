"""Adding, counting up, deleting, denying and forgetting while a completer serves."""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from telic.completion import Completer, PrefixIndex, fit_files, fold
from telic.completion.box.live_changes import Live, compacted
from telic.completion.engine.rules import DenyList, Synonyms
from telic.completion.fit.from_files import with_words
from telic.data.contracts import MAX_COUNT
from telic.errors import InputError


def box(tmp_path, text="title,views\nTea,3\nTeapot,9\nCup,5\nGreen Tea,2\n"):
    (tmp_path / "titles.csv").write_text(text)
    return fit_files(tmp_path / "titles.csv")


def texts(completer, typed, **options):
    return [suggestion.text for suggestion in completer.suggest(typed, **options)]


def test_what_nobody_types_in_a_change_becomes_a_space(tmp_path):
    live = box(tmp_path).live
    live.put(" Teapot\n", 1.0)
    live.increment("Tea \t rose\x07", 2.0)
    assert [text for _, text, _ in live._changed.rows] == ["Tea rose", "Teapot"]
    assert live.find("Tea rose") >= 0
    with pytest.raises(InputError, match="phrase is '': expected something to match"):
        live.put("\x07", 1.0)
    assert live.delete("\x9fTea\x00rose")
    assert live.find("Tea rose") < 0


def test_a_phrase_that_python_gave_is_changed_as_it_is():
    live = Live(PrefixIndex.build(["a\x07b", "a b"], [3.0, 2.0]))
    live.put("a\x07b", 5.0)
    assert [text for _, text, _ in live._changed.rows] == ["a\x07b"]
    assert live.delete("a\x07b")
    assert live.find("a\x07b") < 0 <= live.find("a b")
    with pytest.raises(InputError, match="phrase is None: expected a str"):
        live.put(None, 1.0)


PHRASES = st.sampled_from(["a", "A", "ab", "abc", "b", "á b", "ba"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "increment", "delete"]), PHRASES, st.integers(0, 20)),
    max_size=15,
)


@settings(max_examples=80)
@given(
    start=st.dictionaries(PHRASES, st.integers(0, 20), max_size=6),
    steps=STEPS,
    prefix=st.sampled_from(["", "a", "ab", "b"]),
    n=st.integers(1, 4),
)
# Nothing is deleted, and another phrase is first now; an index of nothing.
@example(start={"a": 5, "ab": 4}, steps=[("put", "a", 0)], prefix="a", n=1)
@example(start={}, steps=[("increment", "a", 3), ("increment", "a", 4)], prefix="a", n=1)
def test_changes_are_merged_into_every_list_as_if_the_index_were_built_anew(
    start, steps, prefix, n, tmp_path_factory
):
    known = {phrase: float(count) for phrase, count in start.items()}
    index = PrefixIndex.build(list(known), np.log1p(list(known.values())))
    template = box(tmp_path_factory.mktemp("box"))
    completer = replace(template, index=index, words=None, merged=False, n=n)
    for step, phrase, count in steps:
        getattr(completer.live, step)(*((phrase,) if step == "delete" else (phrase, count)))
        if step == "delete":
            known = {p: c for p, c in known.items() if fold(p) != fold(phrase)}
        else:
            known[phrase] = count + (known.get(phrase, 0.0) if step == "increment" else 0.0)
    again = replace(completer)
    again.live.restore(json.loads(json.dumps(completer.live.as_json())))
    matching = [p for p in known if fold(p).startswith(fold(prefix))]
    for one in (completer, again):
        found = one.suggest(prefix, show=n)
        assert {s.text for s in found} <= set(matching)
        expected = sorted((np.log1p(known[p]) for p in matching), reverse=True)[:n]
        np.testing.assert_allclose([s.relevance for s in found], expected, atol=1e-9)
        assert len({s.text for s in found}) == len(found)


def test_what_is_deleted_is_found_by_no_road(tmp_path):
    completer = box(tmp_path)
    completer.live.delete("TEA")
    assert not completer.live.delete("tea")
    assert texts(completer, "tea") == ["Teapot", "Green Tea"]
    completer.live.delete("green tea")
    assert "Green Tea" not in texts(completer, "tea gre") + texts(completer, "gren")
    ada = completer.user("ada")
    ada.history["Tea"] = 9.0
    assert "Tea" not in [s.text for s in completer.compose(ada).suggest("te", at=0.0)]
    completer.live.put("Tea", 100)
    assert texts(completer, "tea")[0] == "Tea"


def test_an_added_phrase_is_shown_and_learned_from(tmp_path):
    completer = box(tmp_path)
    completer.live.put("Teaspoon", 50)
    ada = completer.user("ada")
    composition = completer.compose(ada)
    assert composition.suggest("tea", at=0.0)[0].text == "Teaspoon"
    composition.suggest("teas", at=2.0)
    composition.submit("Teaspoon")
    assert ada.history == {"Teaspoon": 1.0}
    again = completer.compose(ada).suggest("teas", at=0.0)
    assert again[0].text == "Teaspoon"
    completer.live.put("silver teaspoon", 5)
    assert texts(completer, "teasp silv") == ["silver teaspoon"]


def test_an_added_phrase_is_one_suggestion_however_a_user_spells_it(tmp_path):
    completer = box(tmp_path)
    completer.live.put("Sun Hat", 50)
    completer.live.delete("Tea")
    completer.live.put("TEA", 50)
    for typed, spelled in (("sun hat", "Sun Hat"), ("tea", "TEA")):
        ada = completer.user("ada")
        completer.compose(ada).submit(typed)
        assert ada.history == {spelled: 1.0}
        found = [s.text for s in completer.compose(ada).suggest(typed, at=0.0)]
        assert (found[0], found.count(typed)) == (spelled, 0)


def test_compaction_builds_the_changes_in(tmp_path):
    rows = "title,views,id,language\nTea,3,1,en\nTee,9,2,de\nCup,5,3,\nTeapot,4,4,en\n"
    completer = box(tmp_path, rows)
    for phrase, count in (("Teaspoon", 50), ("Tea", 20)):
        completer.live.put(phrase, count)
    completer.live.delete("Teapot")
    built = compacted(completer)
    assert built.live.as_json() == {
        "gone": [],
        "deleted": ["teapot"],
        "changed": {},
        "added": {},
    }
    for typed in ("te", "tea", "cup", "teaspon", "teapot"):
        before, after = (
            [(s.text, s.id, s.relevance) for s in c.suggest(typed, show=2)]
            for c in (completer, built)
        )
        assert after[:1] == before[:1] or typed == "teaspon"
    assert texts(built, "taespoon") == ["Teaspoon"]
    assert texts(built, "te", where={"language": "de"})[:2] == ["Teaspoon", "Tee"]
    assert "Teapot" not in texts(built, "teapot")


def test_a_list_of_which_all_was_deleted_is_built_and_begun_anew(tmp_path):
    completer = box(tmp_path, "title,views,id,language\nTea,3,1,en\n")
    completer.live.delete("Tea")
    empty = compacted(completer)
    assert texts(empty, "te") == []
    empty.live.put("Tee", 5)
    built = compacted(empty)
    assert texts(built, "te", where={"language": "de"}) == ["Tee"]
    assert built.suggest("te")[0].id is None


def test_what_cannot_be_put_is_named():
    live = Live(PrefixIndex.build(["tea"], [1.0]), deny=DenyList(("bad",)))
    for phrase, count, message in (
        (" ", 1, "something to match"),
        ("x", -1, "a count is -1"),
        ("x", np.nan, "a count is nan"),
        ("BAD", 1, "on the deny list"),
    ):
        with pytest.raises(InputError, match=message):
            live.put(phrase, count)
    assert live.as_json() == {"gone": [], "deleted": [], "changed": {}, "added": {}}


def test_denied_phrases_are_never_shown_and_never_learned(tmp_path):
    log = "query,at,user\n" + "".join(f"tea party,2026-01-0{d},ada\n" for d in (1, 2))
    (tmp_path / "log.csv").write_text(log)
    (tmp_path / "titles.csv").write_text("title,views\nTea,3\nTeapot,9\nTea Party,5\n")
    fitted = fit_files(tmp_path / "titles.csv", tmp_path / "log.csv")
    assert fitted.users["ada"].previous == "Tea Party"
    fitted.denying(DenyList(("*party*", "/pot$/"))).save(tmp_path / "model")
    completer = Completer.load(tmp_path / "model")
    assert completer.found["phrases denied"] == 2
    changed = Completer.load(tmp_path / "model")
    changed.live.delete("Tea")
    changed.save(tmp_path / "again")  # what denies is of the model, and changes are not
    assert texts(Completer.load(tmp_path / "again"), "te") == ["Tea"]
    ada = completer.user("ada")
    assert (ada.history, ada.previous) == ({}, None)
    assert [s.text for s in completer.compose(ada).suggest("tea", at=0.0)] == ["Tea"]
    composition = completer.compose(ada)
    composition.suggest("t", at=0.0)
    assert not composition.submit("Third Party")
    assert ada.history == {}


# What nobody sees of a text, of each kind: between, around and for letters, and accents of all.
UNSEEN = "\u2061\u2062\u2064\u180e\u115f\u1160\u3164\uffa0\u206a\u206f\ufff0\U0001d173"
UNSEEN += "\u2800\ufff9\U00013430\u180b\u180d\U0001bca1\ufe2f\u20d0\u0487\u2de0\ua66f"
UNSEEN += "\U000e0061\U000e0100\U000e0101\u1ab0\u1dc4\u20dd\ufe20"


@pytest.mark.parametrize(
    ("rule", "denied", "allowed"),
    [
        ("Tea", ["tea", "TÉA"], ["teas", "a tea"]),
        ("*t*", ["at", "tea"], ["bee"]),
        ("*a.c*", ["xa.cx"], ["abc"]),
        ("* t*", ["a tea", "ä\tTea"], ["at", "tea"]),
        ("*t *", ["at a", "T e"], ["at", "tea"]),
        (" *t* ", ["at", "tea"], ["bee"]),
        ("*t*\0", ["at", "tea"], ["bee"]),
        ("/^t/ \n", ["tea"], ["at"]),
        ("green\0tea", ["green tea"], ["tea"]),
        ("tea", ["te\u00ada", "tea\u200b", "\u202atea\u202c", "\ufefftea"], ["teas"]),
        ("*tea*", [f"my t{mark}ea" for mark in UNSEEN], ["te a"]),
        ("/thé/", ["th\u200bé", "thé\u200b", "the\u0301"], ["tho"]),
        ("/أحمد/", ["أ\u200bحمد"], ["حمد"]),
        ("*하*", ["하늘"], ["한국", "ㅎ"]),
        ("*か*", ["かい"], ["がいこく"]),
        ("/か/", ["かい"], ["がいこく"]),
        ("*が*", ["がいこく", "か\u3099い"], ["かい"]),
        (f"/{normalize('NFD', 'café')}/", ["café bar", "cafe\u0301 bar"], ["coffee"]),
        ("/t/", ["at", "tea"], ["bee"]),
        ("/^t.a$/", ["tea"], ["teas", "ta"]),
        ("**", ["**"], ["a*", "*"]),
        ("//", ["//"], ["a/b", "/"]),
    ],
)
def test_a_rule_denies_a_phrase_a_part_or_a_pattern(rule, denied, allowed):
    deny = DenyList((rule, "other"))
    assert [text for text in denied + allowed if deny.denies(text)] == denied


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        *((rule, "expected a phrase") for rule in ("", "*", " * ")),
        ("* *", "expected a phrase"),
        ("/(/", "no regular exp"),
        ("tea*", "has a star on one side"),
        ("*tea", "has a star on one side"),
        ("tea\rpot", "has several lines"),
    ],
)
def test_a_rule_that_is_none_is_named(rule, message):
    with pytest.raises(InputError, match=message):
        DenyList((rule,))


def test_the_letters_of_one_text_are_no_rules():
    with pytest.raises(InputError, match="deny rules: 'tea' is one str, expected a sequence"):
        DenyList("tea")
    with pytest.raises(InputError, match="a group of synonyms: 'tv' is one str"):
        Synonyms((("tea", "cha"), "tv"))
    with pytest.raises(InputError, match=r"deny rules: \(3,\), expected a sequence of str"):
        DenyList((3,))


def test_rules_and_synonyms_are_read_from_text(tmp_path):
    (tmp_path / "deny.txt").write_text("tea\n\n*bad*\n")
    assert DenyList.read(tmp_path / "deny.txt").rules == ("tea", "*bad*")
    (tmp_path / "same.txt").write_text("tv, television\nnyc,new york\n")
    assert Synonyms.read(tmp_path / "same.txt").variants("my tv ") == ["my television "]
    (tmp_path / "same.txt").write_text("nyc, new york\n\ntv\n")
    with pytest.raises(InputError, match=r"same.txt: line 3: .*expected at least two"):
        Synonyms.read(tmp_path / "same.txt")
    (tmp_path / "deny.txt").write_text("tea\n\n/(/\n")
    with pytest.raises(InputError, match=r"deny.txt: line 3: deny rule /\(/: no regular"):
        DenyList.read(tmp_path / "deny.txt")
    (tmp_path / "deny.csv").write_text("rule\ntea\n")
    with pytest.raises(InputError, match="expected a text file"):
        DenyList.read(tmp_path / "deny.csv")


def test_synonyms_fill_the_list(tmp_path):
    completer = box(tmp_path, "title,views\nTelevision stand,3\nHotel New York,9\nTV set,1\n")
    completer = replace(completer, synonyms=Synonyms((("tv", "television"), ("nyc", "new york"))))
    completer.save(tmp_path / "model")
    for one in (completer, Completer.load(tmp_path / "model")):
        assert texts(one, "tv") == ["TV set", "Television stand"]
        assert texts(one, "nyc hot") == ["Hotel New York"]
        assert texts(one, "nyc") == ["Hotel New York"]


def test_what_several_groups_say_takes_one_place_among_the_variants():
    groups = (("tv", "telly"), ("tv", "telly", "television"), ("tv", *(f"tv{i}" for i in range(9))))
    first = ["telly", "television", *(f"tv{i}" for i in range(6))]
    assert Synonyms(groups).variants("tv") == first


def test_a_forgotten_user_is_nowhere_in_the_model(tmp_path):
    log = "query,at,user\n" + "".join(
        f"secret wish,2026-01-0{d},ada\ntea,2026-01-01,bob\n" for d in (1, 2)
    )
    (tmp_path / "log.csv").write_text(log)
    completer = fit_files(tmp_path / "log.csv", min_users=1)
    completer.live.put("cup", 3)
    without = completer.without("ada")
    without.save(tmp_path / "model")
    assert list(without.users) == ["bob"]
    assert without.user("ada").history == {}
    assert texts(without, "cup") == ["cup"]
    assert '"ada"' not in (tmp_path / "model" / "manifest.json").read_text()
    with pytest.raises(InputError, match="knows no user 'ada'"):
        without.without("ada")
    assert with_words(without).words is not None


def test_counts_are_numbers_up_to_what_can_be_added(tmp_path):
    live = box(tmp_path).live
    live.put("most", MAX_COUNT)
    live.put("none", 0.0)
    assert live.weight(live.find("most")) == pytest.approx(np.log1p(MAX_COUNT))
    for count in (MAX_COUNT * 1.001, -0.001, float("nan"), "3", None):
        with pytest.raises(InputError, match=r"a count is .*, expected a number from 0 to 1e\+12"):
            live.put("more", count)


def test_counts_are_added_in_the_unit_of_the_weights():
    live = Live(PrefixIndex.build(["tea"], [0.5 * np.log1p(4)]), unit=0.5)
    live.increment("tea", 3)
    live.increment("cup", 2)
    for phrase, count in (("tea", 7), ("cup", 2)):
        assert live.weight(live.find(phrase)) == pytest.approx(0.5 * np.log1p(count))


def test_phrases_of_equal_popularity_are_equal_however_they_came_to_it(tmp_path):
    counts = range(1, 400)
    text = "title,views\n" + "".join(
        f"a{count},{count}\nb{count},{count / 2}\n" for count in counts
    )
    live = box(tmp_path, text).live
    for count in counts:
        live.put(f"c{count}", count)
        live.increment(f"b{count}", count / 2)
        weights = {live.weight(live.find(f"{letter}{count}")) for letter in "abc"}
        assert len(weights) == 1, count


def test_every_change_makes_what_was_derived_before_it_out_of_date():
    live = Live(PrefixIndex.build(["tea"], [1.0]))
    versions = [live.version]
    for change in (
        lambda: live.put("cup", 1),
        lambda: live.increment("tea"),
        lambda: live.delete("cup"),
        lambda: live.restore({"gone": [], "changed": {}, "added": {}}),
        lambda: live.put("pot", 1),
    ):
        change()
        versions.append(live.version)
    assert versions == sorted(set(versions))


TWO_SHOPS = (
    "title,views,category\nTea,9,a\nTea,20,b\nTeak,5,a\nTeak,8,b\nGreen Tea,3,a\nGreen Tea,9,b\n"
)


def shown(completer, typed, **options):
    return [(s.text, round(s.relevance, 9)) for s in completer.suggest(typed, **options)]


@pytest.mark.parametrize("again", [False, True])
def test_a_phrase_is_changed_in_all_of_its_contexts(again, tmp_path):
    completer = box(tmp_path, TWO_SHOPS)
    completer.live.put("Teak", 30)
    completer.live.increment("Tea", 2)
    completer.live.put("Green Tea", 50)
    if again:
        stored, completer = completer.live.as_json(), box(tmp_path, TWO_SHOPS)
        completer.live.restore(json.loads(json.dumps(stored)))
    for one in (completer, compacted(completer)):
        for category, tea in (("a", 11.0), ("b", 22.0)):
            found = shown(one, "tea", where={"category": category})
            counts = {"Teak": 30.0, "Tea": tea, "Green Tea": 50.0}
            assert [text for text, _ in found] == ["Teak", "Tea", "Green Tea"]
            for text, relevance in found[:2]:
                assert relevance == pytest.approx(np.log1p(counts[text]))
        found = shown(one, "tea")
        assert [text for text, _ in found] == ["Teak", "Tea", "Green Tea"]  # each once
        assert found[1][1] == pytest.approx(np.log1p(22.0))  # as its best
        boosted = shown(one, "tea", boost={"category": {"a": 9.0}})
        assert dict(boosted)["Tea"] == pytest.approx(np.log1p(11.0) + np.log(9.0))


def test_a_phrase_that_was_changed_in_several_contexts_can_be_deleted_and_added(tmp_path):
    completer = box(tmp_path, TWO_SHOPS)
    completer.live.put("Tea", 30)
    assert completer.live.delete("tea")
    assert texts(completer, "tea") == ["Teak", "Green Tea"]
    completer.live.increment("Tea", 2)
    for category in ("a", "b"):  # what is new is limited to no context
        assert dict(shown(completer, "tea", where={"category": category}))["Tea"] == pytest.approx(
            np.log(3)
        )
    assert len(completer.live) == 3


def test_an_own_query_that_was_changed_in_several_contexts_is_shown_once_and_learned(tmp_path):
    (tmp_path / "titles.csv").write_text(TWO_SHOPS)
    (tmp_path / "log.csv").write_text("user,query,at\nada,Teak,2026-03-01\n")
    completer = fit_files(tmp_path / "titles.csv", tmp_path / "log.csv", min_users=1)
    completer.live.put("Tea", 30)
    completer.live.put("Green Tea", 9)
    ada = completer.user()
    ada.history |= {"Tea": 1.0, "Green Tea": 1.0}
    for shop, best in (("", 0.0), ("a", np.log(1.5)), ("b", np.log(1.5))):
        boost = {"category": {shop: 1.5}} if shop else {}
        typing = completer.compose(ada, boost=boost)
        found = typing.suggest("te", at=0.0)
        assert [each.text for each in found] == ["Tea", "Teak", "Green Tea"]
        assert found[0].relevance == pytest.approx(np.log(31) + np.log(2) + best)
        # What is submitted is what was shown.
        assert typing.listed("te", at=1.0).numbers[0] == typing._number("Tea")


WORDY = st.sampled_from(["tea pot", "pot of tea", "teapot", "green tea", "東京塔", "paot", "team"])


@settings(max_examples=60, deadline=None)
@given(
    start=st.dictionaries(WORDY, st.integers(1, 20), min_size=1, max_size=5),
    changes=st.lists(
        st.tuples(st.sampled_from(["put", "increment", "delete"]), WORDY, st.integers(1, 20)),
        max_size=6,
    ),
)
def test_words_and_typos_find_changes_as_in_a_list_built_anew(start, changes):
    with tempfile.TemporaryDirectory() as folder:
        rows = "".join(f"{phrase},{count}\n" for phrase, count in start.items())
        completer = box(Path(folder), "title,views\n" + rows)
    for kind, phrase, count in changes:
        if kind == "delete":
            completer.live.delete(phrase)
        else:
            getattr(completer.live, kind)(phrase, count)
    built = compacted(completer)
    for typed in ("pot", "tea", "tae pot", "pto tea", "京塔", "tea p", "pot ", "gree"):
        one, other = (
            sorted((s.text, round(s.relevance, 9)) for s in each.suggest(typed))
            for each in (completer, built)
        )
        assert one == other


def test_equal_phrases_that_words_find_keep_their_order_when_changes_are_built_in(tmp_path):
    completer = box(tmp_path, "title,views\nz apple,5\nm apple,5\n")
    for phrase in ("b apple", "A apple", "n apple"):
        completer.live.put(phrase, 5)
    for show in (2, 4, 10):
        found = texts(completer, "apple", show=show)
        assert found == ["A apple", "b apple", "m apple", "n apple", "z apple"][:show]
        assert texts(compacted(completer), "apple", show=show) == found


def test_however_many_are_changed_a_list_is_filled(tmp_path):
    rows = "".join(f"z{i:03} apple,{1000 - i}\n" for i in range(300))
    completer = box(tmp_path, "title,views\n" + rows)
    for i in range(150):
        completer.live.delete(f"z{i:03} apple")
    for i in range(150, 270):
        completer.live.put(f"z{i:03} apple", 0)
    assert texts(completer, "apple") == [f"z{i} apple" for i in range(270, 280)]


def searched(tmp_path, rows):
    """A box of a query log, whose suggestions count a user's own queries."""
    (tmp_path / "log.csv").write_text("user,query,at\n" + "".join(rows))
    return fit_files(tmp_path / "log.csv")


def by_all(query):
    return [f"u{i},{query},2026-03-0{1 + i}T09:00\n" for i in range(5)]


def test_what_was_deleted_stays_away_from_those_who_searched_for_it(tmp_path):
    own = ["ada,tea towel,2026-03-02T10:00\n", "ada,tea bomb,2026-03-02T11:00\n"]
    completer = searched(tmp_path, [*by_all("tea towel"), *by_all("tea pot"), *own])
    assert {"tea towel", "tea bomb"} < set(texts(completer, "tea", user="ada"))
    assert completer.live.delete("Tea Towel")
    assert not completer.live.delete("téa bomb")  # in a history alone
    restored = fit_files(tmp_path / "log.csv")
    restored.live.restore(json.loads(json.dumps(completer.live.as_json())))
    for each in (completer, compacted(completer), restored):
        for typed in ("tea", "towel", "bomb", "bmob"):
            assert not {"tea towel", "tea bomb"} & set(texts(each, typed, user="ada"))
    built = compacted(completer)
    built.live.put("tea bomb", 3)
    assert built.suggest("bomb", user="ada")[0].relevance > built.suggest("bomb")[0].relevance
    assert "tea bomb" in texts(built, "tea", user="ada")
    assert "tea towel" not in texts(built, "tea", user="ada")


def test_what_was_deleted_and_added_again_counts_for_those_who_searched_for_it(tmp_path):
    completer = searched(tmp_path, [*by_all("teapot"), *by_all("teacup"), *by_all("tea")])
    completer = replace(completer, relevance=replace(completer.relevance, personal=2.0))
    ada = completer.user()
    ada.history |= {"teapot": 30.0}
    for phrase in ("teapot", "teacup"):
        completer.live.delete(phrase)
        completer.live.put(phrase, 5)
    for one in (completer, compacted(completer)):
        found = one.compose(ada).suggest("te", at=0.0)
        assert [each.text for each in found] == ["teapot", "tea", "teacup"]
        assert found[0].relevance == pytest.approx(np.log(6) + 2 * np.log(31))


def test_a_completer_with_other_parts_keeps_changes_and_what_is_denied(tmp_path):
    (tmp_path / "titles.csv").write_text("title,views\nTea,9\nTeapot,7\nTeacup,5\nTeaspoon,3\n")
    completer = fit_files(tmp_path / "titles.csv").denying(DenyList(("teacup", "*pot*")))
    completer.save(tmp_path / "box")
    completer = Completer.load(tmp_path / "box")
    completer.live.delete("Tea")
    completer.live.put("Teabag", 4)
    completer.live.put("Teaspoon", 30)
    fewer = replace(completer, n=2, relevance=replace(completer.relevance, popular=0.5))
    assert [(s.text, s.relevance) for s in fewer.suggest("te")] == [
        ("Teaspoon", pytest.approx(0.5 * np.log(31))),
        ("Teabag", pytest.approx(0.5 * np.log(5))),
    ]
    fewer.live.delete("Teabag")  # a copy: the first goes on by itself
    assert texts(completer, "te") == ["Teaspoon", "Teabag"]
    anew = completer.denying(DenyList(("teabag", "tea")))
    assert texts(anew, "te") == ["Teaspoon", "Teapot", "Teacup"]
    assert texts(anew.denying(DenyList(("teapot",))), "te") == ["Teaspoon", "Teacup"]
    with pytest.raises(InputError, match="is on the deny list"):
        anew.live.put("Teabag", 4)
    restored = Completer.load(tmp_path / "box").denying(DenyList(("teabag",)))
    restored.live.restore(completer.live.as_json())
    assert "Teabag" not in texts(restored, "te")


def test_what_one_completer_deletes_another_of_the_same_users_keeps(tmp_path):
    one = searched(tmp_path, [*by_all("tea"), *by_all("ten"), *by_all("two")])
    other = replace(one, n=5)
    one.live.delete("tea")
    other.live.delete("ten")
    for _ in range(2):
        assert sorted(texts(one, "t", user="u0")) == ["ten", "two"]
        assert sorted(texts(other, "t", user="u0")) == ["tea", "two"]


def test_a_history_in_other_spellings_counts_for_the_one_that_is_shown(tmp_path):
    """The list may have been fitted again since, or an editor have mended its spelling."""
    completer = searched(tmp_path, [*by_all("tea"), *by_all("teapot"), *by_all("ten")])
    ada = completer.user()
    ada.history |= {"TEA": 2.0, "tea": 1.0, "Tenor": 1.0, "TENOR": 3.0}
    found = {s.text: s.relevance for s in completer.compose(ada).suggest("te", at=0.0)}
    assert sorted(found) == ["TENOR", "tea", "teapot", "ten"]
    weight = completer.relevance.factors[1]
    assert found["tea"] == pytest.approx(completer.suggest("tea")[0].relevance + weight * np.log(4))
    assert found["TENOR"] == pytest.approx(weight * np.log(5))
    completer.live.delete("tea")
    completer.live.put("Tea", 7)
    for one in (completer, compacted(completer)):
        found = {s.text: s.relevance for s in one.compose(ada).suggest("te", at=0.0)}
        assert sorted(found) == ["TENOR", "Tea", "teapot", "ten"]
        shared = next(s.relevance for s in one.suggest("te") if s.text == "Tea")
        assert found["Tea"] == pytest.approx(shared + weight * np.log(4))
    apart = replace(completer, merged=False)
    found = [s.text for s in apart.compose(ada).suggest("te", at=0.0)]
    assert sorted(found) == ["TEA", "TENOR", "Tea", "Tenor", "tea", "teapot", "ten"]


def test_a_change_reaches_what_is_being_typed_by_those_who_searched_for_it(tmp_path):
    """At the next keystroke, and each phrase once; feedback on other texts stays theirs."""
    completer = searched(tmp_path, [*by_all("tea"), *by_all("teapot"), *by_all("ten")])
    ada = completer.user()
    ada.history |= {"tea": 2.0, "tell": 1.0, "tender": 1.0}
    typing = completer.compose(ada)
    typing.suggest("t", at=0.0)
    typing.shown(["tender", "never heard of", "tell"])
    live = completer.live
    changes = [(live.delete, "tea"), (live.put, "tell", 7), (live.increment, "ten", 50)]
    changes += [(live.delete, "tender"), (live.put, "tea", 3), (live.put, "tender", 9)]
    for at, (change, *what) in enumerate(changes, 1):
        change(*what)
        for typed in ("te", "xx tel"):
            shown, anew = (
                [(each.text, each.relevance) for each in one.suggest(typed, at=float(at))]
                for one in (typing, completer.compose(ada))
            )
            assert shown == anew
    observed = {each.text: each.explain().observed for each in typing.suggest("te", at=9.0)}
    assert observed["teapot"]
    typing.shown(["never heard of"])
    typing.suggest("ten", at=10.0)


def test_a_new_deny_list_holds_for_what_users_searched_for_before(tmp_path):
    rows = [*by_all("tea pot"), "eve,tea bomb,2026-03-02T10:00\n"]
    before = searched(tmp_path, rows)
    eve, denying = before.user("eve"), before.denying(DenyList(("*bomb*",)))
    for completer, there in ((before, True), (denying, False)):
        # The state comes from the service's database, from before the list.
        for typed in ("tea", "bomb"):
            shown = completer.compose(eve).suggest(typed, at=0.0)
            assert ("tea bomb" in [each.text for each in shown]) == there


@pytest.mark.parametrize(
    ("rules", "denied"),
    [
        (("/(a)x/", r"/(.)\1\1/"), ["zzz", "bax"]),
        (("/Viagra/",), ["viagra", "VIAGRA pills"]),
        (("/café/",), ["Café noir", "Cafe\u0301 noir"]),
        (("/한국/",), [normalize("NFD", "한국어")]),
        (("/^cafe/",), ["Café noir"]),
        (("*tea*", "/(?i)bad/"), ["bad", "teas"]),
        (("/(?P<w>a)b/", "/(?P<w>c)d/"), ["xab", "xcd"]),
    ],
)
def test_each_pattern_is_looked_for_by_itself_whatever_the_case(rules, denied):
    deny = DenyList(rules)
    assert [text for text in [*denied, "good"] if deny.denies(text)] == denied


def test_what_is_changed_is_read_while_another_thread_changes_it():
    live = Live(PrefixIndex.build([f"tea {i}" for i in range(3000)], np.ones(3000)))

    def change():
        for i in range(3000):
            live.put(f"tea {i}", 2.0)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(change)
        while not done.done():
            live.touched()
        done.result()
    assert live.touched().all()


def test_words_of_changed_phrases_are_made_anew_where_a_phrase_is_new(tmp_path):
    completer = box(tmp_path)
    completer.live.put("Iced Tea", 4)
    assert texts(completer, "tea iced") == ["Iced Tea"]
    before = completer.live._changed._words
    completer.live.increment("Iced Tea")
    assert completer.live._changed._words is before
    completer.live.put("Iced Tea Rose", 3)
    assert texts(completer, "tea iced") == ["Iced Tea", "Iced Tea Rose"]
    completer.live.put("ICED tea", 2)  # another spelling of a form that is there
    assert texts(completer, "tea iced") == ["Iced Tea", "Iced Tea Rose", "ICED tea"]
    completer.live.delete("iced tea")
    assert texts(completer, "tea iced") == ["Iced Tea Rose"]
