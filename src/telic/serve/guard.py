"""What every answer carries, whom we answer, and the one shape of an error."""

import logging
import re
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_log = logging.getLogger("telic.serve")
_HOST = re.compile(r"(?P<name>[^:@/\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE)
_DEFAULTS = {
    400: ("bad_request", "Look at the request again."),
    404: (
        "not_found",
        "See /, /phones, /suggest, /submit, /search, /about, /healthz, /opensearch.xml.",
    ),
    405: ("method_not_allowed", "The Allow header names the methods of this address."),
}


class Problem(HTTPException):
    """An answer that says what is wrong and what to do about it."""

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        super().__init__(status, message)
        self.code, self.hint = code, hint


def problem(status: int, code: str, message: str, hint: str) -> JSONResponse:
    """Return the one shape that errors have."""
    error = {"code": code, "message": message, "hint": hint}
    return JSONResponse({"error": error}, status, {**SECURITY_HEADERS, "Cache-Control": "no-store"})


def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer a `Problem`, or what Starlette raises for unknown addresses and methods."""
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return problem(error.status_code, error.code, error.detail, error.hint)
    code, hint = _DEFAULTS.get(error.status_code, _DEFAULTS[400])
    response = problem(error.status_code, code, error.detail + ".", hint)
    response.headers.update(error.headers or {})
    return response


def on_no_database(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of the database; its kind goes to the log, without the request."""
    _log.error("the database fails: %s", type(error).__name__)
    return problem(
        503, "no_database", "The database does not answer.", "Look at its disk or server."
    )


def on_crash(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of ours; the traceback goes to the log, without the request."""
    return problem(
        500, "internal", "Something went wrong on our side.", "Try again; if it stays, report it."
    )


def refuse_other_origins(headers: Headers) -> None:
    """Raise `Problem` if a browser says that another site's page sent this."""
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site", "same-origin")
    foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
    if foreign or site not in ("same-origin", "none"):
        raise Problem(
            403, "cross_origin", "Posts from other sites are refused.", "Post from our own page."
        )


class Guard:
    """Middleware: answers only to our own names (against DNS rebinding), adds security headers.

    Starlette's TrustedHostMiddleware does the first too, but its errors are plain text.
    """

    def __init__(self, app: ASGIApp, *, hosts: set[str]) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        host = _HOST.fullmatch(Headers(scope=scope).get("host", ""))
        if host is None or host["name"].lower().strip("[]") not in self.hosts:
            answer = problem(
                400, "unknown_host", "This service does not go by that name.",
                "Use 127.0.0.1 or localhost, or start it with --host.",
            )  # fmt: skip
            return await answer(scope, receive, send)
        await self.app(scope, receive, send_with_headers)
