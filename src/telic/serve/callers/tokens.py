"""API keys, and tokens that prove who a user is; with the standard library alone.

A site has a key, which only its own server knows. For each of its users it signs a token that the
user's browser may hold: it proves the user's id until it expires, and nothing else.
"""

import base64
import hashlib
import hmac
import secrets
import time

PREFIX = "telic_"
VERSION = "t1"
HOUR = 3600.0


def new_key() -> str:
    """Return a new API key, of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    """Return what a service keeps of a key: it tells the key, but does not give it away."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def sign_user(key: str, user: str, *, seconds: float = HOUR, now: float | None = None) -> str:
    """Return a token that proves a user's id to the service.

    Parameters
    ----------
    key : str
        The site's API key.
    user : str
        The user's id, as the site knows it.
    seconds : float
        How long the token is good for.
    now : float, optional
        Seconds since 1970; the system's clock by default.

    Returns
    -------
    str
        ``t1.KEY.EXPIRES.USER.MAC``: the first 16 hex digits of the key's SHA-256, whole seconds
        since 1970, the user's UTF-8 in URL-safe base64 without padding, and, in the same letters,
        the HMAC-SHA256 of all before the last dot, under the 64 hex digits of the key's SHA-256.

    Examples
    --------
    >>> sign_user("telic_example", "ada", seconds=60, now=0.0)
    't1.291f20d35e64873e.60.YWRh.4bOvXI0o569Ki_lfS28nJ33UwvVadLlacA38uY2sQ6A'
    """
    return signed(digest_of(key), user, (time.time() if now is None else now) + seconds)


def signed(digest: str, user: str, expires: float) -> str:
    """Return what `sign_user` does, from the digest of a key, which is all the service has."""
    said = f"{VERSION}.{digest[:16]}.{int(expires)}.{_letters(user.encode())}"
    return f"{said}.{_mac(digest, said)}"


def _mac(digest: str, said: str) -> str:
    return _letters(hmac.digest(digest.encode(), said.encode(), "sha256"))


def _letters(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class TokenError(ValueError):
    """A token that proves nothing; the text says why."""


def read_token(token: str, digests: dict[str, str], now: float) -> tuple[str, str]:
    """Return the digest of the key that signed a token, and the user's id.

    Parameters
    ----------
    token : str
    digests : dict of str to str
        By its first 16 digits, the digest of each key.
    now : float
        Seconds since 1970.

    Raises
    ------
    TokenError
        If it was not signed with one of these keys, or has expired.
    """
    said, _, mac = token.rpartition(".")
    parts = said.split(".")
    if len(parts) != 4 or parts[0] != VERSION or not token.isascii():
        raise TokenError("The token has no form that is known here.")
    digest = digests.get(parts[1])
    if digest is None or not hmac.compare_digest(mac, _mac(digest, said)):
        raise TokenError("The token was not signed with a key that is known here.")
    # Signed here or by a site: what follows has the form that was signed, or is the site's mistake.
    try:
        expires = int(parts[2])
        user = base64.urlsafe_b64decode(parts[3] + "=" * (-len(parts[3]) % 4)).decode()
    except ValueError:
        raise TokenError("The token's user or time cannot be read.") from None
    if now >= expires:
        raise TokenError("The token has expired.")
    return digest, user
