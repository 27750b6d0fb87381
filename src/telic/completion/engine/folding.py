"""The form in which text is matched, while its original spelling is what people see."""

import re
import unicodedata
from collections.abc import Sequence

from telic.data.contracts import MAX_TEXT
from telic.data.text_marks import UNSEEN, UNTYPED, one_or_more
from telic.errors import InputError

_MARKS = re.compile(one_or_more(UNTYPED + UNSEEN, r"\U{code:08x}"))
_UNSEEN = re.compile(one_or_more(UNSEEN, r"\U{code:08x}"))
_LETTERS = str.maketrans(
    {
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "ħ": "h",
        "ŧ": "t",
        "ı": "i",
        "æ": "ae",
        "œ": "oe",
        "þ": "th",
        "ى": "ي",
        "ة": "ه",
        "ँ": "ं",
    }
)
"""Letters that have no decomposition but are typed as others."""
_KEPT = 20_000
"""Characters whose folded form is remembered: scripts in use have far fewer."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_MATCHES_NOTHING = b"\xff"  # a byte that UTF-8 never uses


def fold(text: str) -> str:
    r"""Fold case, accents, compatibility forms and white space away.

    NFKD, drop marks, Unicode case folding, NFKD and drop again (case folding may yield characters
    that decompose), replace letters that have no decomposition but are typed as others (ł as l, ø
    as o, æ as ae, ı as i, Arabic ى as ي), then tidy the white space.

    The marks that are dropped are those that people leave out as they type, accents, Hebrew points,
    Arabic vowel signs and hamzas, the Devanagari nukta; and what nobody sees, such as joiners
    (`telic.data.text_marks`). Elsewhere a combining mark is a letter's body: Indic vowel signs,
    Thai tones and the voicing of kana stay. The Cyrillic ``й`` folds to ``и``, its decomposition.

    The result is deliberately *not* recomposed: decomposed, the half-typed Hangul syllable ``하``
    is a prefix of ``한``, and so is ``か`` of ``が``.

    Runs of white space become one space, because nobody sees the difference between them;
    leading white space is dropped, trailing white space is kept as one space, because in a prefix
    it says that the word is finished: ``"new "`` begins ``"new york"`` but not ``"newcastle"``.

    Folding twice changes nothing more, and where a text is cut between two graphemes, its folded
    beginning is a prefix of the folded whole.

    Parameters
    ----------
    text : str
        Any text, also the empty one.

    Returns
    -------
    str
        The folded text; empty if `text` has nothing but white space and marks.

    Examples
    --------
    >>> fold("  São\tPAULO")
    'sao paulo'
    >>> fold("Straße "), fold("Łódź, İzmir, Ærø")
    ('strasse ', 'lodz, izmir, aero')
    """
    if text.isascii():
        form = text.lower()
    else:
        # Character by character; then marks that are left take the order that they have in NFD.
        form = unicodedata.normalize("NFD", text.translate(_BY_CHARACTER))
    words = form.split()
    folded = " ".join(words)
    return folded + " " if words and text[-1].isspace() else folded


def seen(text: str) -> str:
    """Return what is shown of a text, no letter of it taken apart."""
    return text if text.isascii() else unicodedata.normalize("NFC", _UNSEEN.sub("", text))


def form_of_character(code: int) -> str | None:
    """Return what a character folds to, " " if it is white space, None if in part white space."""
    character, form = chr(code), _BY_CHARACTER[code]
    if character.isspace() and form.isspace():
        return " "
    return None if character.isspace() or any(map(str.isspace, form)) else form


def encoded_prefix(prefix: str) -> bytes:
    """Return a prefix's folded form in UTF-8, or what matches nothing."""
    if not isinstance(prefix, str):
        raise InputError(f"prefix is {prefix!r}, expected a str.")
    if len(prefix) > MAX_TEXT:
        return _MATCHES_NOTHING
    # No phrase has a lone surrogate, so a prefix that has one finds nothing.
    return fold(prefix).encode(errors="surrogatepass")


def checked_form(phrase: str, name: str) -> str:
    """Return the folded form of a phrase; InputError about `name` if it cannot be indexed."""
    if not isinstance(phrase, str):
        problem = "expected a str"
    elif len(phrase) > MAX_TEXT:
        problem = f"of {len(phrase)} characters, expected at most {MAX_TEXT}"
    elif _SURROGATE.search(phrase):
        problem = "expected valid Unicode without lone surrogates"
    elif form := fold(phrase):
        return form
    else:
        problem = "expected something to match besides white space and diacritics"
    shown = repr(phrase) if len(repr(phrase)) <= 60 else f"{repr(phrase)[:60]}..."
    raise InputError(f"{name} is {shown}: {problem}. Drop or mend it.")


def place_among(query: str, texts: Sequence[str]) -> int:
    """Return where a list has a query, -1 if it has not: in its spelling, or one that folds alike.

    Examples
    --------
    >>> place_among("TEA", ["Tee", "Tea", "tea"]), place_among("te", ["Tea"])
    (1, -1)
    """
    if query in texts:
        return texts.index(query)
    return next((i for i, text in enumerate(texts) if fold_alike(query, text)), -1)


def fold_alike(one: str, other: str) -> bool:
    """Say whether two texts differ in case, accents and white space alone."""
    return fold(one).strip() == fold(other).strip()


def _folded(text: str) -> str:
    return _without_marks(_without_marks(text).casefold()).translate(_LETTERS)


class _Characters(dict[int, str]):
    """The folded form of each character, found when it is first asked for."""

    def __missing__(self, code: int) -> str:
        form = _folded(chr(code))
        if len(self) < _KEPT:
            self[code] = form
        return form


_BY_CHARACTER = _Characters()


def _without_marks(text: str) -> str:
    return _MARKS.sub("", unicodedata.normalize("NFKD", text))
