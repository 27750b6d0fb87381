"""What requests bring, read within bounds and checked."""

import json
import math
import unicodedata
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_plus

from starlette.requests import ClientDisconnect, Request

from telic.completion import Completer, Phone, fold
from telic.completion.engine.filters import MOST_SETS, Contexts
from telic.errors import InputError
from telic.serve.http.errors import Problem
from telic.serve.operation.settings import Settings

KEYSTROKE = ("q", "user", "composition", "t", "explain", "consent", "boost")
"""What a keystroke may say, beside contexts and a phone's apps."""
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
    parts = [part.partition("=") for part in given.split("&") if part]
    if "%" in given or "+" in given:
        return {_unquoted(name): _unquoted(value) for name, _, value in parts}
    return {name: value for name, _, value in parts}


def _unquoted(part: str) -> str:
    # Most parts have nothing to unquote, which is found out in a tenth of the time.
    return unquote_plus(part) if "%" in part or "+" in part else part


async def json_object(request: Request, settings: Settings) -> dict[str, Any]:
    """Return a request's body, which must be a JSON object."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind.lower() != "application/json":
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
    if not body and "upgrade" in request.headers:
        raise Problem(
            422, "not_json", "The body of a request for another protocol (Upgrade) is not read.",
            "Send plain HTTP/1.1; Java's HttpClient does with version(HTTP_1_1).",
        )  # fmt: skip
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise Problem(
            422, "not_json", "The body is no JSON object.",
            'Send {"q": ...} to /suggest; "user", "composition" and "query" to /submit; '
            '"id" and "changes" to /phrases; "user" to /forget.',
        )  # fmt: skip
    return given


def typed(posted: dict[str, Any]) -> tuple[dict[str, str], list[Any]]:
    """Return what a posted keystroke says, as an address would, and its phone's apps."""
    given = {name: value for name, value in posted.items() if value is not None}
    apps = [given.pop("installed", {}), given.pop("opened", [])]
    for name in ("q", "user", "composition"):
        if not isinstance(given.get(name, ""), str):
            raise Problem(422, "bad_text", f"'{name}' must be a string.", "Send a JSON string.")
    if "boost" in given:
        given["boost"] = json.dumps(given["boost"])
    for name, value in given.items():
        if isinstance(value, list | dict):  # a filter by it would leave nothing over
            raise Problem(422, "bad_text", f"'{name}' is no single value.", "Send one text.")
    for name in ("explain", "consent"):
        if given.get(name) is True:
            given[name] = "1"
    # What is no text is written as in a list's JSON: true and not True.
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in given.items()}
    return texts, apps


def boosts(
    value: str, contexts: Contexts | None, settings: Settings
) -> dict[str, dict[str, float]]:
    """Return what a request boosts, context → value → factor, given as JSON."""
    if not value:
        return {}
    try:
        given = json.loads(value)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not all(isinstance(each, dict) for each in given.values()):
        raise _bad_boost(
            "'boost' is no JSON object of objects.", 'Send {"context": {"value": factor}}.'
        )
    names = contexts.names if contexts else []
    for name in given:
        if name not in names:
            there = f"Only {', '.join(names)}." if names else "This model has none."
            raise _bad_boost(f"'boost' names no context of the phrases: {name[:40]!r}.", there)
    most, factors = settings.max_boost, [each for of in given.values() for each in of.values()]
    if len(factors) > settings.max_boosts:
        raise _bad_boost(
            f"'boost' has {len(factors)} values, over {settings.max_boosts}.", "Boost fewer."
        )
    if (sets := math.prod(1 + len(of) for of in given.values())) > MOST_SETS:
        raise _bad_boost(
            f"'boost' has {sets} combinations of values, over {MOST_SETS}.", "Boost fewer."
        )
    for factor in factors:
        number = isinstance(factor, int | float) and not isinstance(factor, bool)
        if not number or not 1 / most <= factor <= most:
            raise _bad_boost(
                f"'boost' has {json.dumps(factor)[:40]}, expected a number from {1 / most:g} to "
                f"{most:g}.",
                "Correct it.",
            )
    return {name: {v: float(factor) for v, factor in of.items()} for name, of in given.items()}


def _bad_boost(message: str, hint: str) -> Problem:
    return Problem(422, "bad_boost", message, hint)


def known(given: Iterable[str], names: Iterable[str]) -> None:
    """Refuse names that an address does not take: a mistyped filter would filter nothing."""
    if unknown := sorted({*given}.difference(names)):
        raise Problem(
            422, "unknown_name", f"Nothing here is named {unknown[0][:40]!r}.",
            f"There are only {', '.join(names)}.",
        )  # fmt: skip


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


def phone(completer: Completer, installed: Any, opened: Any) -> Phone | None:
    """Return a phone's signals as the model takes them; None if it takes none."""
    shaped = isinstance(installed, dict) and isinstance(opened, list)
    if not shaped or not all(
        isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in opened
    ):
        raise Problem(
            422, "bad_apps", "'installed' must be an object and 'opened' an array of pairs.",
            'Send {"installed": {"app": opens a day}, "opened": [["app", minutes since]]}.',
        )  # fmt: skip
    try:
        return completer.phone(installed, [(app, since) for app, since in opened])
    except InputError as error:
        raise Problem(422, "bad_apps", str(error), "Correct it.") from None
