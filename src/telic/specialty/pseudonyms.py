"""Names for users that tell nobody who they are."""

import hashlib
import hmac
import secrets


class Pseudonyms:
    """Names for users that cannot be undone without the key.

    Parameters
    ----------
    key : bytes, optional
        The same key gives the same names; without one a random key is drawn and forgotten.

    Examples
    --------
    >>> names = Pseudonyms(b"a key of your own")
    >>> names("ann") == names("ann") != names("bob")
    True
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def __call__(self, identifier: str) -> str:
        """Return the pseudonym of an id."""
        digest = hmac.new(self._key, identifier.encode(), hashlib.sha256).hexdigest()
        return f"user-{digest[:10]}"
