"""Which keys lie beside each other.

On typos that were made at random, an option that prices slips of the finger lower put the phrase
that was meant higher where half of the wrong letters were such slips, and more so where all were;
where none were, it put it a little lower.
"""

from functools import cache

import numpy as np

from telic.errors import InputError

ROWS = {
    "qwerty": ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "qwertz": ("1234567890", "qwertzuiop", "asdfghjkl", "yxcvbnm"),
    "azerty": ("1234567890", "azertyuiop", "qsdfghjklm", "wxcvbn"),
}
"""The keys of each layout, row by row, of letters and digits."""
BEGIN = (0.0, 0.5, 0.75, 1.25)
"""How far to the right each row begins, in keys."""
BESIDE = 1.3
"""Keys whose middles are no farther apart than so many keys lie beside each other."""


@cache
def keys_beside(keyboard: str | None) -> np.ndarray | None:
    """Return which characters below 128 have keys beside each other; None of no keyboard.

    Parameters
    ----------
    keyboard : str, optional
        One of `ROWS`.

    Raises
    ------
    InputError
        If there is no such layout.

    Examples
    --------
    >>> beside = keys_beside("qwerty")
    >>> "".join(chr(code) for code in range(128) if beside[ord("s"), code])
    'adewxz'
    """
    if not keyboard:
        return None
    if keyboard not in ROWS:
        raise InputError(f"keyboard is {keyboard!r}, expected {', '.join(ROWS)}. Leave it out?")
    keys = [key for row in ROWS[keyboard] for key in row]
    middles = np.array(
        [(begin + i, y) for y, begin in enumerate(BEGIN) for i in range(len(ROWS[keyboard][y]))]
    )
    apart = np.hypot(*(middles[:, None] - middles[None]).transpose(2, 0, 1))
    codes = [ord(key) for key in keys]
    beside = np.zeros((128, 128), np.bool_)
    beside[np.ix_(codes, codes)] = (apart > 0) & (apart <= BESIDE)
    beside.flags.writeable = False
    return beside
