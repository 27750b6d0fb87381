"""The form in which text is matched, while its original spelling is what people see."""

import re
import unicodedata

_DIACRITICS = re.compile("[\u0300-\u036f]+")


def fold(text: str) -> str:
    r"""Fold case, accents, compatibility forms and white space away.

    NFKD, drop the combining diacritics U+0300–036F, Unicode case folding, NFKD and drop again
    (case folding may yield characters that decompose), then tidy the white space.

    Only that block of marks is dropped: elsewhere in Unicode a combining mark is a letter's
    body rather than its accent, so Indic vowel signs, Thai tones and the voicing of kana stay.
    Letters without a decomposition, such as ``ø`` and ``ł``, stay too. The Cyrillic ``й`` folds
    to ``и``, its decomposition.

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
        The folded text; empty if `text` has nothing but white space and diacritics.

    Examples
    --------
    >>> fold("  São\tPAULO")
    'sao paulo'
    >>> fold("Straße ")
    'strasse '
    """
    if text.isascii():
        text = text.lower()
    else:
        text = _without_diacritics(_without_diacritics(text).casefold())
    words = text.split()
    folded = " ".join(words)
    return folded + " " if words and text[-1].isspace() else folded


def _without_diacritics(text: str) -> str:
    return _DIACRITICS.sub("", unicodedata.normalize("NFKD", text))
