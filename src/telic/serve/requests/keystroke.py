"""The address of keystrokes: a plain ASGI application, since it is most of what a service does."""

import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from telic.serve.callers.access import Access
from telic.serve.callers.hosts_and_origins import Hosts, cors_headers, refuse_other_origins
from telic.serve.http import inputs
from telic.serve.http.connections import belongs, written_whole
from telic.serve.http.errors import Problem, crash
from telic.serve.http.padding import padded
from telic.serve.http.security_headers import RAW_SECURITY_HEADERS
from telic.serve.operation.settings import Settings
from telic.serve.requests.dispatch import Desk

MEDIA_TYPE = "application/x-suggestions+json"
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"), *RAW_SECURITY_HEADERS
]  # fmt: skip
_HEAD = b"".join(b"%s: %s\r\n" % header for header in _HEADERS)
_log = logging.getLogger("telic.serve")


class KeystrokeRoute:
    """Answers ``/suggest`` in the OpenSearch suggestions form.

    ``GET`` is what browsers' own search bars send. ``POST`` keeps what is typed out of addresses,
    which others log, and brings what a phone says of its apps: ``installed`` (app → openings a day)
    and ``opened`` (pairs of an app and minutes since). Routing, middleware and response objects
    would cost several times the answer itself, so it does without them.
    """

    def __init__(self, desk: Desk, hosts: Hosts, access: Access, settings: Settings) -> None:
        self._desk, self._hosts, self._access, self._settings = desk, hosts, access, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self.answer(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Serve one request; return the answer's status."""
        headers = dict(scope["headers"])
        shared = cors_headers(self._access, headers)
        try:
            base = f"{scope['scheme']}://{self._hosts.named(headers)}{scope['root_path']}/"
            posted = scope["method"] == "POST"
            if posted:
                refuse_other_origins(self._access, headers)
            caller = self._access.caller(scope, headers)
            apps: list[Any] | None = None
            if posted:
                given, apps = inputs.typed(
                    await inputs.json_object(Request(scope, receive), self._settings)
                )
            else:
                given = inputs.parameters(scope["query_string"], self._settings)
            self._access.identify(caller, given)
            client = scope.get("client")
            body = await self._desk.suggest(given, base, apps, client[0] if client else "")
        except Exception as error:
            if not isinstance(error, Problem):
                _log.exception("a keystroke went unanswered")
            problem = error.response() if isinstance(error, Problem) else crash()
            problem.raw_headers += shared
            self._pad(problem)
            await problem(scope, receive, send)
            return problem.status_code
        body = padded(body, 200, [*_HEADERS, *shared], self._settings.pad_replies)
        if not written_whole(scope, _HEAD, shared, body):
            length = (b"content-length", b"%d" % len(body))
            found = [length, *_HEADERS, *shared]
            await send({"type": "http.response.start", "status": 200, "headers": found})
            await send({"type": "http.response.body", "body": body})
        belongs(scope, self._desk.owner(given))
        return 200

    def _pad(self, problem: Response) -> None:
        """Give an error the size that other replies have."""
        others = [(name, value) for name, value in problem.raw_headers if name != b"content-length"]
        body = bytes(problem.body)
        problem.body = padded(body, problem.status_code, others, self._settings.pad_replies)
        problem.headers["content-length"] = str(len(problem.body))
