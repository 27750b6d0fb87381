"""Replies of a few sizes, so that their size tells little to who sees them encrypted."""

from collections.abc import Iterable
from http import HTTPStatus

from starlette.types import Message, Send


def padded(body: bytes, status: int, headers: Iterable[tuple[bytes, bytes]], least: int) -> bytes:
    """Return a JSON body with white space behind it, so that its reply has one of a few sizes.

    These are `least` and what comes of doubling it. A reply's size is that of its head and body
    together, since the heads of errors differ from others.

    Parameters
    ----------
    body : bytes
    status : int
    headers : iterable of (bytes, bytes)
        Those of the reply, without the body's length and without what all replies have.
    least : int
        Bytes; 0 leaves the body as it is.

    Examples
    --------
    >>> [len(padded(b"[]" * n, 200, [], 128)) for n in (1, 50, 70)]
    [123, 123, 251]
    """
    if not least:
        return body
    head = len(HTTPStatus(status).phrase)
    head += sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
    size = least
    while (length := _filling(size - head)) < len(body):
        size *= 2
    return body.ljust(length)


def padding(send: Send, least: int) -> Send:
    """Return what sends an answer padded: its head waits for the end of its body."""
    start: Message = {}
    body = b""

    async def padded_send(message: Message) -> None:
        nonlocal start, body
        if message["type"] == "http.response.start":
            start = message
            return
        body += message.get("body", b"")
        if message.get("more_body"):
            return
        others = [field for field in start["headers"] if field[0].lower() != b"content-length"]
        whole = padded(body, start["status"], others, least)
        length = (b"content-length", b"%d" % len(whole))
        await send({**start, "headers": [length, *others]})
        await send({"type": "http.response.body", "body": whole})

    return padded_send


def _filling(room: int) -> int:
    """Return the length that fills a room together with its own digits; -1 if none does."""
    for length in (room - len(str(room)), room - len(str(room)) + 1):
        if length >= 0 and length + len(str(length)) == room:
            return length
    return -1
