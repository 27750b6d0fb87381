"""Characters that people leave out as they type, or that nobody sees."""

from collections.abc import Iterable

UNTYPED: tuple[tuple[int, int], ...] = (
    # Accents of Latin and Greek letters and of symbols, then of Cyrillic letters.
    *((0x300, 0x36F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20FF), (0xFE20, 0xFE2F)),
    *((0x483, 0x489), (0x2DE0, 0x2DFF), (0xA66F, 0xA672), (0xA674, 0xA67D), (0xA69E, 0xA69F)),
    # Hebrew points.
    *((0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7)),
    # Arabic vowel signs, hamzas above and below, and the stretched line.
    *((0x610, 0x61A), (0x640, 0x640), (0x64B, 0x65F), (0x670, 0x670), (0x6D6, 0x6DC)),
    *((0x6DF, 0x6E8), (0x6EA, 0x6ED)),
    # The Devanagari nukta.
    (0x93C, 0x93C),
)
"""First and last code of each range of marks that people leave out as they type."""
UNSEEN: tuple[tuple[int, int], ...] = (
    # What Unicode says is not shown: soft hyphens, joiners, marks of direction and of how an emoji
    # is shown, spaces of no width, fillers, tags, operators that mathematicians imagine; and the
    # braille cell without dots, annotations between lines, joiners of hieroglyphs.
    *((0xAD, 0xAD), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0x2800, 0x2800), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB)),
    *((0x13430, 0x13438), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""The same of characters that are not shown."""


def one_or_more(ranges: Iterable[tuple[int, int]], character: str) -> str:
    """Return a regular expression of characters; `character` formats a code, as code=."""
    parts = (f"{character.format(code=a)}-{character.format(code=b)}" for a, b in ranges)
    return f"[{''.join(parts)}]+"
