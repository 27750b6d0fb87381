"""The addresses of the service."""

import json
import math
import unicodedata
from functools import partial
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

import telic
from telic.completion import Phone, Suggestion, fold
from telic.completion.harm import gate_facts
from telic.errors import InputError
from telic.serve.events import Events
from telic.serve.guard import Problem, refuse_other_origins
from telic.serve.sessions import Sessions
from telic.serve.settings import Settings

PAGE = files("telic.serve") / "page"
LATEST = 1e15
"""The largest client timestamp that is accepted, in milliseconds."""
OPENSEARCH = """\
<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>telic</ShortName>
  <Description>A search box that learns while you type</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Url type="text/html" template="{base}search?q={{searchTerms}}"/>
  <Url type="application/x-suggestions+json" template="{base}suggest?q={{searchTerms}}"/>
</OpenSearchDescription>
"""


class Service:
    """The answers, one method for each address."""

    def __init__(self, sessions: Sessions, events: Events, settings: Settings) -> None:
        self.sessions, self.events, self.settings = sessions, events, settings

    def routes(self) -> list[BaseRoute]:
        """Return the addresses."""
        return [
            Route("/", self.page),
            Route("/search", self.search),
            Route("/suggest", self.suggest),
            Route("/suggest", self.suggest_on_phone, methods=["POST"]),
            Route("/phones", self.phones),
            Route("/submit", self.submit, methods=["POST"]),
            Route("/about", self.about),
            Route("/healthz", self.healthz),
            Route("/opensearch.xml", self.opensearch),
            Mount("/static", StaticFiles(packages=[("telic.serve", "page")])),
        ]

    async def suggest(self, request: Request) -> Response:
        """Answer a keystroke in the OpenSearch suggestions form."""
        return await self._suggest(request, self._parameters(request))

    async def suggest_on_phone(self, request: Request) -> Response:
        """Answer a keystroke of a phone, whose apps are no business of an address's log.

        The same names as in the address, and ``installed`` (app → openings a day) and ``opened``
        (pairs of an app and minutes since).
        """
        refuse_other_origins(request.headers)
        given = await self._json(request)
        given = {name: value for name, value in given.items() if value is not None}
        phone = self._phone(given.pop("installed", {}), given.pop("opened", []))
        for name in ("q", "user", "composition"):
            if not isinstance(given.get(name, ""), str):
                raise Problem(422, "bad_text", f"'{name}' must be a string.", "Send a JSON string.")
        if given.get("explain") is True:
            given["explain"] = "1"
        strings = {name: str(value) for name, value in given.items()}
        return await self._suggest(request, strings, phone)

    async def _suggest(
        self, request: Request, given: dict[str, str], phone: Phone | None = None
    ) -> Response:
        query = self._text(given.get("q", ""), "q", self.settings.max_query)
        user, composition = (
            self._text(given.get(name, ""), name, self.settings.max_id)
            for name in ("user", "composition")
        )
        contexts = self.sessions.completer.contexts
        where = {
            name: self._text(given[name], name, self.settings.max_id)
            for name in (contexts.names if contexts else ())
            if given.get(name)
        }
        if user and composition:
            client = _seconds(given.get("t"))
            answer_now = partial(
                self.sessions.suggest,
                query,
                user,
                composition,
                client=client,
                phone=phone,
                where=where,
            )
            if self.sessions.is_open(user, composition):
                suggestions = answer_now()
            else:  # what is stored of the user is read first
                suggestions = await run_in_threadpool(answer_now)
        else:
            suggestions = self.sessions.static(query, phone, where)
        texts = [suggestion.text for suggestion in suggestions]
        answer: list[Any] = [
            query,
            texts,
            [""] * len(texts),
            [f"{request.base_url}search?q={quote(text, safe='')}" for text in texts],
        ]
        explained = given.get("explain") == "1"
        if explained or self.sessions.completer.records:
            told = [_carried(one) | (_explained(one) if explained else {}) for one in suggestions]
            answer.append({"suggestions": told})
        return Response(
            json.dumps(answer),  # escaped: half a character, as typed, is no UTF-8
            media_type="application/x-suggestions+json",
            headers={"Cache-Control": "no-store"},
        )

    async def submit(self, request: Request) -> Response:
        """Learn from a submission."""
        refuse_other_origins(request.headers)
        given = await self._json(request)
        query = self._required(given, "query", self.settings.max_query)
        user = self._required(given, "user", self.settings.max_id)
        composition = self._required(given, "composition", self.settings.max_id)
        learned, updates = await run_in_threadpool(self.sessions.submit, query, user, composition)
        return JSONResponse({"learned": learned, "updates": updates})

    async def page(self, request: Request) -> Response:
        """Return the page."""
        return _page("")

    async def search(self, request: Request) -> Response:
        """Return the page with the query filled in: where a browser's search bar leads."""
        given = self._parameters(request)
        return _page(self._text(given.get("q", ""), "q", self.settings.max_query))

    async def phones(self, request: Request) -> Response:
        """Return the page with two phones side by side."""
        return HTMLResponse((PAGE / "phones.html").read_text(encoding="utf-8"))

    async def about(self, request: Request) -> Response:
        """Say what serves here, for people to judge what they see."""
        completer = self.sessions.completer
        return JSONResponse(
            {
                "model": completer.model,
                "relevance": completer.relevance.name,
                "protocol": completer.protocol,
                "learned_popularity": completer.relevance.unlearned is not None,
                "candidates": completer.n,
                "phrases": len(completer.index),
                "apps": completer.phones.telling() if completer.phones else [],
                "simulated": completer.simulated,
                "feedback": completer.gate.summary(),
                "gate": gate_facts(completer.gate),
                "running_check": completer.do_no_harm,
                "version": telic.__version__,
            }
        )

    async def healthz(self, request: Request) -> Response:
        """Say whether the service can do its work."""
        await run_in_threadpool(self.events.check)
        return JSONResponse({"status": "ok", "open_compositions": len(self.sessions)})

    async def opensearch(self, request: Request) -> Response:
        """Describe the search, so that a browser can add it."""
        text = OPENSEARCH.format(base=escape(str(request.base_url)))
        return Response(text, media_type="application/opensearchdescription+xml")

    def _phone(self, installed: Any, opened: Any) -> Phone | None:
        ranker = self.sessions.completer.phones
        shaped = isinstance(installed, dict) and isinstance(opened, list)
        if not shaped or not all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)
            for pair in opened
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

    def _parameters(self, request: Request) -> dict[str, str]:
        if len(request.scope["query_string"]) > self.settings.max_body:
            raise Problem(
                413, "too_large", f"The address has over {self.settings.max_body} bytes.",
                "Shorten its parameters.",
            )  # fmt: skip
        return dict(request.query_params)

    async def _json(self, request: Request) -> dict[str, Any]:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Problem(
                415, "not_json", "The content type is not application/json.", "Send JSON."
            )
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > self.settings.max_body:
                raise Problem(
                    413, "too_large", f"The body has over {self.settings.max_body} bytes.",
                    "Send only what this address takes.",
                )  # fmt: skip
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

    def _required(self, given: dict[str, Any], name: str, limit: int) -> str:
        value = given.get(name)
        if not isinstance(value, str) or not fold(self._text(value, name, limit)):
            raise Problem(422, "missing", f"'{name}' is missing or blank.", "Send text.")
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
            raise Problem(
                422, "bad_text", f"'{name}' has control characters or broken Unicode.", "Send text."
            )
        return value

    def _text(self, value: str, name: str, limit: int) -> str:
        if len(value) > limit:
            raise Problem(
                422, "too_long", f"'{name}' has {len(value)} characters, over {limit}.",
                "Shorten it.",
            )  # fmt: skip
        return value


def _seconds(t: str | None) -> float | None:
    if t is None:
        return None
    try:
        milliseconds = float(t)
    except ValueError:
        milliseconds = math.nan
    if not 0 <= milliseconds <= LATEST:
        raise Problem(
            422,
            "bad_time",
            "'t' must be milliseconds >= 0.",
            "Send the client's clock, or leave 't' out.",
        )
    return milliseconds / 1000


def _carried(suggestion: Suggestion) -> dict[str, Any]:
    return {"text": suggestion.text, "id": suggestion.id, "payload": suggestion.payload}


def _explained(suggestion: Suggestion) -> dict[str, Any]:
    why = suggestion.explain()
    return {
        "relevance": suggestion.relevance,
        "feedback": suggestion.feedback,
        "static_position": suggestion.static_position,
        "reasons": why.reasons,
        "observed": why.observed,
        "apps": suggestion.apps,
        "app_reasons": why.apps,
    }


def _page(query: str) -> Response:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace('value=""', f'value="{escape(query)}"', 1))
