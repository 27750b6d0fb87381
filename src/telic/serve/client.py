"""A client of the service for Python, with the standard library alone."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import urlsplit

from telic.errors import TelicError

_T = TypeVar("_T")


class ServiceError(TelicError):
    """The service did not do what was asked; the text says why."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 0 if there was no answer."""


class Client:
    """Asks a service over one connection that is kept; for one thread.

    Parameters
    ----------
    address : str
        Such as ``https://search.example``.
    key : str
        API key, which may name any of its tenant's users; or a user's token.
    timeout : float
        Seconds to wait for an answer.
    pad : int
        Bytes to which the body of each request is filled up with white space, or to twice, four
        times … as many, so that its size tells little of what is typed; 0: not padded.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000")
    >>> client.suggest("sal", user="ada", composition="1")  # doctest: +SKIP
    [{'text': 'salmon', 'url': 'http://127.0.0.1:8000/search?q=salmon'}]
    """

    def __init__(self, address: str, *, key: str = "", timeout: float = 5.0, pad: int = 0) -> None:
        kinds = {"http": HTTPConnection, "https": HTTPSConnection}
        try:
            parts = urlsplit(address)
            if not parts.hostname:
                raise ValueError
            self._connection = kinds[parts.scheme](parts.hostname, parts.port, timeout=timeout)
        except (HTTPException, KeyError, ValueError):
            raise ServiceError(f"{address!r} is no address, expected https://NAME.") from None
        self._base, self._pad = parts.path.rstrip("/"), pad
        self._headers = {"Content-Type": "application/json"}
        if not (key.isascii() and key.isprintable()):  # an error of the headers would quote it
            raise ServiceError("the key has a line break, or characters that no key has.")
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def suggest(
        self,
        q: str,
        *,
        user: str = "",
        composition: str = "",
        t: float | None = None,
        where: Mapping[str, str] | None = None,
        boost: Mapping[str, Mapping[str, float]] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the suggestions for what stands in the box: text, url, and id and payload if any.

        Parameters
        ----------
        q : str
        user, composition : str
            Without them the order is the static one.
        t : float, optional
            Milliseconds on the client's clock at the keystroke.
        where : mapping, optional
            Contexts to suggest within.
        boost : mapping, optional
            Context → value → factor by which its phrases count as more popular, within the
            service's bounds.
        """
        given: dict[str, Any] = {"q": q, "user": user, "composition": composition, "t": t}
        given |= {"boost": boost, **(where or {})}
        return self._post("/suggest", given, _suggestions)

    def submit(self, query: str, *, user: str = "", composition: str) -> dict[str, Any]:
        """Tell what was searched for: it counts once, so send it again if this raises."""
        given = {"query": query, "composition": composition} | ({"user": user} if user else {})
        return self._post("/submit", given, partial(_with, "learned"))

    def change(self, id: str, changes: Sequence[Mapping[str, Any]]) -> int:
        """Change phrases, with an editor's key; if this raises without a status, send it again.

        Parameters
        ----------
        id : str
            The batch's, new within its tenant.
        changes : sequence of mapping
            Each such as ``{"phrase": "tea", "popularity": 9}``, with ``"by": 1`` or with
            ``"delete": True``; at most 500, and as many bytes as the service takes (``max_body``).

        Returns
        -------
        int
            The batch's number.
        """
        given = {"id": id, "changes": list(changes)}
        return int(self._post("/phrases", given, partial(_with, "number"))["number"])

    def forget(self, user: str) -> dict[str, Any]:
        """Erase a user everywhere, with an admin's key; if this raises, ask again.

        Parameters
        ----------
        user : str
            As the service keeps him: ``TENANT:ID``, or ``ID`` where there are no tenants.

        Returns
        -------
        dict
            What there was: `rows` of the store, `records`, and whether the `model` knew the user.
        """
        return self._post("/forget", {"user": user}, partial(_with, "rows"))

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _post(self, path: str, given: dict[str, Any], read: Callable[[Any], _T]) -> _T:
        """Return what `read` makes of an answer; it fails on what the service never answers."""
        body, size = json.dumps(given), self._pad
        while 0 < size < len(body):  # in ASCII: a character is a byte
            size *= 2
        body = body.ljust(size)
        for last in (False, True):  # a connection that was kept may have been ended meanwhile
            try:
                self._connection.request("POST", self._base + path, body, self._headers)
                response = self._connection.getresponse()
                status, content = response.status, response.read()
                break
            except (OSError, HTTPException, ValueError) as error:
                self._connection.close()
                if last or isinstance(error, TimeoutError):
                    raise ServiceError(f"the service does not answer ({error}).") from None
        try:
            answer = json.loads(content)
            if status == 200:
                return read(answer)
            said = "{message} {hint}".format(**answer["error"])
        except (KeyError, RecursionError, TypeError, ValueError):
            raise ServiceError(
                f"no answer of the service, but a {status} of something else. Is a proxy in front "
                "of it, or is the address another's?"
            ) from None
        raise ServiceError(said, status)


def _suggestions(answer: Any) -> list[dict[str, Any]]:
    _, texts, _, urls, *more = answer
    carried = more[0]["suggestions"] if more else [{} for _ in texts]
    return [
        each | {"text": text, "url": url}
        for text, url, each in zip(texts, urls, carried, strict=True)
    ]


def _with(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {name: answer[name], **answer}
