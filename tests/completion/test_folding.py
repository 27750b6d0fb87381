import sys
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telic.completion import fold
from telic.completion.engine import encoded_phrases, folding
from telic.completion.engine.fold_kernels import fold_texts
from telic.data.tables import unmatchable

GRAPHEMES = [
    *"aZ ß4ſǆþ",
    "é",
    "e\u0301",
    "ç",
    "ǖ",
    "각",
    "하",
    "が",
    "か\u3099",
    "ไม้",
    "ﬁ",
    "\u3000",
]
GRAPHEMES += [
    "क्षि",
    "א\u05b8",
    "م\u064f",
    "Й",
    "👩‍👩‍👧",
    "❤️",
    "🇫🇷",
    "\u00a0",
    "\n",
    "ΐ",
    "ᾳ",
    "Σ",
    "ς",
]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        ("New York", "new york"),
        ("  New \t\u3000 York\n", "new york "),
        ("São Paulo", "sao paulo"),
        ("Sa\u0303o Paulo", "sao paulo"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Ὀδυσσεύς", "οδυσσευσ"),
        ("ﬁn Ⅷ ①", "fin viii 1"),
        ("ＴＯＫＹＯ", "tokyo"),
        ("Łódź", "lodz"),
        ("İstanbul, Diyarbakır", "istanbul, diyarbakir"),
        ("Ærøskøbing Þórr Đà Nẵng Œuvre", "aeroskobing thorr da nang oeuvre"),
        ("ΆΘΗΝΑΙ", "αθηναι"),
        ("قَهْوَة", "قهوه"),
        ("أحمد إيمان آمنة موسى", "احمد ايمان امنه موسي"),
        ("مـــرحبا", "مرحبا"),
        ("שָׁלוֹם", "שלום"),
        ("ज़रूर चाँद", "जरूर चांद"),
        ("می\u200cخواهم", "میخواهم"),
        ("ｶﾞｷﾞ １２", "カ\u3099キ\u3099 12"),
        ("\u0301 \u0301", ""),
    ],
)
def test_what_people_do_not_tell_apart_folds_alike(text, folded):
    assert fold(text) == folded


@pytest.mark.parametrize("letter", ["ि", "้", "\u3099", "\u0e31", "\u0bcd"])
def test_marks_that_make_the_letter_stay(letter):
    assert unicodedata.combining(letter) or unicodedata.category(letter).startswith("M")
    assert letter in fold("x" + letter)


@pytest.mark.parametrize(
    ("prefix", "text"),
    [("ㅎ", "한국"), ("하", "한국"), ("か", "がく"), ("ﾊ", "パリ"), ("strass", "Straße")],
)
def test_a_half_typed_letter_is_a_prefix(prefix, text):
    assert fold(text).startswith(fold(prefix))


def test_a_finished_word_begins_no_longer_word():
    assert fold("New York").startswith(fold("new "))
    assert not fold("Newcastle").startswith(fold("new "))


def test_folding_twice_changes_nothing_for_any_character():
    characters = (chr(c) for c in range(sys.maxunicode + 1) if c < 0x3400 or chr(c).isalnum())
    assert [c for c in characters if fold(once := fold(c)) != once] == []


@given(st.text(st.characters() | st.sampled_from("\u0301\u0323\u034f\u0345\u3099 İſß")))
def test_folding_is_idempotent_and_blind_to_normal_form(text):
    folded = fold(text)
    assert fold(folded) == folded
    assert fold(unicodedata.normalize("NFC", text)) == fold(unicodedata.normalize("NFD", text))


@given(st.lists(st.sampled_from(GRAPHEMES)), st.integers(0))
def test_the_beginning_of_a_text_folds_to_a_prefix_of_it(graphemes, cut):
    beginning = "".join(graphemes[: cut % (len(graphemes) + 1)])
    assert fold("".join(graphemes)).startswith(fold(beginning))


@given(st.text(st.characters(codec="ascii")))
def test_ascii_takes_the_same_road(text):
    assert fold(text) == fold(text + "é").removesuffix("e")
    assert fold(text) == fold(text.upper())


def test_readers_refuse_exactly_the_characters_that_leave_nothing_to_match():
    # Every character there is, and some of those that nobody has given a meaning.
    meant = (c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Co"))
    spare = (chr(i) for i in (*range(0, 0x110000, 64), *range(0xE0000, 0xE1000)))
    characters = [c for c in {*meant, *spare} if unicodedata.category(c) != "Cs"]
    assert unmatchable(pa.array(characters)).tolist() == [not fold(c) for c in characters]


@given(st.text(max_size=12) | st.text("aé\u0301\u0323\u0e35\u0e48\u093f\u094d각ß ", max_size=8))
def test_a_text_folds_by_its_characters_as_it_does_whole(text):
    # The definition; `fold` remembers each character's form.
    whole = text.lower() if text.isascii() else folding._folded(text)
    words = whole.split()
    expected = " ".join(words) + (" " if words and text[-1].isspace() else "")
    assert fold(text) == expected


MARKS = "\u0a3c\u0e38\u0e48\u094d\u3099\u0f71"  # that stay, of classes 7, 103, 107, 9, 8, 129
MARKED = st.text(f"aกが {MARKS}\u0301\u0323\u200d", min_size=1, max_size=6)


@given(st.lists(MARKED, min_size=1, max_size=5))
@example(["が\u0a3c"])
def test_marks_that_stay_take_the_order_of_the_normal_form(texts):
    for text in texts:
        words = folding._folded(text).split()
        assert fold(text).split() == words
        for one, other in zip(*(" ".join(words)[i:] for i in (0, 1)), strict=False):
            assert unicodedata.combining(one) <= (unicodedata.combining(other) or 255)
    coded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, coded)])
    folded, ends, rest = fold_texts(np.frombuffer(b"".join(coded), np.uint8), offsets, 99)
    for i, text in enumerate(texts):
        # Compiled, texts are folded but for those that are empty or whose marks change places.
        kept = "".join(folding._folded(one) for one in text)
        moved = unicodedata.normalize("NFD", kept) != kept
        assert rest[i] == (moved or not fold(text))
        assert rest[i] or folded[ends[i] : ends[i + 1]].tobytes().decode() == fold(text)


def test_few_phrases_are_folded_one_by_one_and_many_at_once(monkeypatch):
    asked = []

    def noted(*given):
        asked.append(len(given[1]) - 1)
        return fold_texts(*given)

    monkeypatch.setattr(encoded_phrases, "fold_texts", noted)
    for count in (encoded_phrases.FEW, encoded_phrases.FEW + 1):
        spelled, folded = encoded_phrases.encoded_phrases([f"Straße {i}" for i in range(count)])
        assert folded.to_pylist() == [f"strasse {i}".encode() for i in range(count)]
        assert spelled.to_pylist()[-1] == f"Straße {count - 1}".encode()
    assert asked == [encoded_phrases.FEW + 1]
