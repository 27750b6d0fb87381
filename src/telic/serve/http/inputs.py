"""What requests bring, read within bounds and checked."""

import json
import math
import unicodedata
from typing import Any
from urllib.parse import unquote_plus

from starlette.requests import ClientDisconnect, Request

from telic.completion import Phone, PhoneRanker, fold
from telic.errors import InputError
from telic.serve.http.errors import Problem
from telic.serve.operation.settings import Settings

LATEST = 1e15
"""The largest client timestamp that is accepted, in milliseconds."""


def parameters(query_string: bytes, settings: Settings) -> dict[str, str]:
    """Return the parameters of an address; of a name that comes twice, the last."""
    if len(query_string) > settings.max_body:
        raise Problem(
            413, "too_large", f"The address has over {settings.max_body} bytes.",
            "Shorten its parameters.",
        )  # fmt: skip
    given = query_string.decode("latin-1")
    parts = [part.partition("=") for part in given.split("&")]
    if "%" in given or "+" in given:
        return {unquote_plus(name): unquote_plus(value) for name, _, value in parts}
    return {name: value for name, _, value in parts}


async def json_object(request: Request, settings: Settings) -> dict[str, Any]:
    """Return a request's body, which must be a JSON object."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Problem(415, "not_json", "The content type is not application/json.", "Send JSON.")
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > settings.max_body:
                raise Problem(
                    413, "too_large", f"The body has over {settings.max_body} bytes.",
                    "Send only what this address takes.",
                )  # fmt: skip
    except ClientDisconnect:  # nobody reads the answer, but nothing of ours has gone wrong
        raise Problem(400, "cut_short", "The body ended too soon.", "Send all of it.") from None
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise Problem(
            422, "not_json", "The body is no JSON object.",
            'Send {"q": ...} to /suggest; "user", "composition" and "query" to /submit.',
        )  # fmt: skip
    return given


def typed(posted: dict[str, Any]) -> tuple[dict[str, str], list[Any]]:
    """Return what a posted keystroke says, as an address would, and its phone's apps."""
    given = {name: value for name, value in posted.items() if value is not None}
    apps = [given.pop("installed", {}), given.pop("opened", [])]
    for name in ("q", "user", "composition"):
        if not isinstance(given.get(name, ""), str):
            raise Problem(422, "bad_text", f"'{name}' must be a string.", "Send a JSON string.")
    for name in ("explain", "consent"):
        if given.get(name) is True:
            given[name] = "1"
    return {name: str(value) for name, value in given.items()}, apps


def text(value: str, name: str, limit: int) -> str:
    """Return a text that is not too long."""
    if len(value) > limit:
        raise Problem(
            422, "too_long", f"'{name}' has {len(value)} characters, over {limit}.", "Shorten it."
        )
    return value


def storable(value: str, name: str, limit: int) -> str:
    """Return a text that is not too long and that every database can hold."""
    text(value, name, limit)
    if not value.isprintable() and any(
        unicodedata.category(character) in ("Cc", "Cs") for character in value
    ):
        raise Problem(
            422, "bad_text", f"'{name}' has control characters or broken Unicode.", "Send text."
        )
    return value


def whole(value: str, name: str, most: int) -> int:
    """Return a whole number from 1 to `most`."""
    if not (value.isascii() and value.isdigit() and len(value) < 10 and 1 <= int(value) <= most):
        raise Problem(
            422, "bad_number", f"'{name}' must be a whole number from 1 to {most}.", "Correct it."
        )
    return int(value)


def required(given: dict[str, Any], name: str, limit: int) -> str:
    """Return a text that must be there and say something."""
    value = given.get(name)
    if not isinstance(value, str) or not fold(text(value, name, limit)):
        raise Problem(422, "missing", f"'{name}' is missing or blank.", "Send text.")
    return storable(value, name, limit)


def seconds(t: str | None) -> float | None:
    """Return a client's timestamp, given in milliseconds."""
    if t is None:
        return None
    try:
        milliseconds = float(t)
    except ValueError:
        milliseconds = math.nan
    if not 0 <= milliseconds <= LATEST:
        raise Problem(
            422, "bad_time", "'t' must be milliseconds >= 0.",
            "Send the client's clock, or leave 't' out.",
        )  # fmt: skip
    return milliseconds / 1000


def phone(ranker: PhoneRanker | None, installed: Any, opened: Any) -> Phone | None:
    """Return a phone's signals as the model takes them; None if it takes none."""
    shaped = isinstance(installed, dict) and isinstance(opened, list)
    if not shaped or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in opened
    ):
        raise Problem(
            422, "bad_apps", "'installed' must be an object and 'opened' an array of pairs.",
            'Send {"installed": {"app": opens a day}, "opened": [["app", minutes since]]}.',
        )  # fmt: skip
    if ranker is None:
        return None
    try:
        return ranker.phone(installed, [(app, since) for app, since in opened])
    except InputError as error:
        raise Problem(422, "bad_apps", str(error), "Correct it.") from None
