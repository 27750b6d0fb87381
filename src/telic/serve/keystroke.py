"""The answer to a keystroke: a plain ASGI application, since it is most of what a service does."""

import json
import logging
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from telic.completion import Phone, Suggestion
from telic.serve import inputs
from telic.serve.guard import RAW_SECURITY_HEADERS, Hosts, Problem, crash
from telic.serve.sessions import Sessions
from telic.serve.settings import Settings

_log = logging.getLogger("telic.serve")
_quoted = lru_cache(maxsize=1 << 14)(partial(quote, safe=""))


class Keystroke:
    """Answers ``GET /suggest`` in the OpenSearch suggestions form.

    Routing, middleware, request and response objects would cost several times the answer itself,
    so it does without them.
    """

    def __init__(self, sessions: Sessions, hosts: Hosts, settings: Settings) -> None:
        self._sessions, self._hosts, self._settings = sessions, hosts, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            base = f"{scope['scheme']}://{self._hosts.named(scope)}{scope['root_path']}/"
            given = inputs.parameters(scope["query_string"], self._settings)
            body = await self.answer(given, base)
        except Problem as error:
            return await error.response()(scope, receive, send)
        except Exception:
            _log.exception("a keystroke went unanswered")
            return await crash()(scope, receive, send)
        length = (b"content-length", b"%d" % len(body))
        head = {"type": "http.response.start", "status": 200, "headers": [length, *_HEADERS]}
        await send(head)
        await send({"type": "http.response.body", "body": body})

    async def answer(self, given: dict[str, str], base: str, phone: Phone | None = None) -> bytes:
        """Return the answer's body.

        Parameters
        ----------
        given : dict of str to str
            The request's parameters.
        base : str
            The address that results' addresses begin with.
        phone : Phone, optional
        """
        sessions, limit = self._sessions, self._settings.max_id
        query = inputs.text(given.get("q", ""), "q", self._settings.max_query)
        user = inputs.storable(given.get("user", ""), "user", limit)
        composition = inputs.storable(given.get("composition", ""), "composition", limit)
        explain = given.get("explain") == "1"
        suggestions: list[Suggestion] | None = None
        if user and composition:
            client = inputs.seconds(given.get("t"))
            typing = sessions.find(user, composition)
            if typing is None:
                typing = await sessions.open(user, composition, phone)
            suggestions = sessions.suggest(typing, query, client=client)
        elif explain or phone:
            suggestions = sessions.nobody(query, phone)
        texts = (
            sessions.static(query) if suggestions is None else [each.text for each in suggestions]
        )
        search = f"{base}search?q="
        answer: list[Any] = [
            query, texts, [""] * len(texts), [search + _quoted(text) for text in texts]
        ]  # fmt: skip
        if explain and suggestions is not None:
            answer.append({"suggestions": [_explained(suggestion) for suggestion in suggestions]})
        return json.dumps(answer).encode()  # escaped: half a character, as typed, is no UTF-8


def _explained(suggestion: Suggestion) -> dict[str, Any]:
    why = suggestion.explain()
    return {
        "text": suggestion.text,
        "relevance": suggestion.relevance,
        "feedback": suggestion.feedback,
        "static_position": suggestion.static_position,
        "reasons": why.reasons,
        "observed": why.observed,
        "apps": suggestion.apps,
        "app_reasons": why.apps,
    }


MEDIA_TYPE = "application/x-suggestions+json"
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"), *RAW_SECURITY_HEADERS
]  # fmt: skip
