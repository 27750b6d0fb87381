"""The address of keystrokes: a plain ASGI application, since it is most of what a service does."""

import logging

from starlette.types import Receive, Scope, Send

from telic.serve import inputs
from telic.serve.desk import Desk
from telic.serve.guard import RAW_SECURITY_HEADERS, Hosts, Problem, crash
from telic.serve.settings import Settings

MEDIA_TYPE = "application/x-suggestions+json"
_HEADERS = [
    (b"content-type", MEDIA_TYPE.encode()), (b"cache-control", b"no-store"), *RAW_SECURITY_HEADERS
]  # fmt: skip
_log = logging.getLogger("telic.serve")


class Keystroke:
    """Answers ``GET /suggest`` in the OpenSearch suggestions form.

    Routing, middleware, request and response objects would cost several times the answer itself,
    so it does without them.
    """

    def __init__(self, desk: Desk, hosts: Hosts, settings: Settings) -> None:
        self._desk, self._hosts, self._settings = desk, hosts, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        try:
            base = f"{scope['scheme']}://{self._hosts.named(scope)}{scope['root_path']}/"
            given = inputs.parameters(scope["query_string"], self._settings)
            body = await self._desk.suggest(given, base)
        except Problem as error:
            return await error.response()(scope, receive, send)
        except Exception:
            _log.exception("a keystroke went unanswered")
            return await crash()(scope, receive, send)
        length = (b"content-length", b"%d" % len(body))
        head = {"type": "http.response.start", "status": 200, "headers": [length, *_HEADERS]}
        await send(head)
        await send({"type": "http.response.body", "body": body})
