"""What every answer carries, whom we answer, and the one shape of an error."""

import re
from collections.abc import Iterable
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
RAW_SECURITY_HEADERS = [
    (name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()
]
MAX_KNOWN = 100
"""Spellings of our own names, with ports, that are not looked at again."""
_HOST = re.compile(r"(?P<name>[^:@/\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE)
_DEFAULTS = {
    400: ("bad_request", "Look at the request again."),
    404: (
        "not_found",
        "See /, /phones, /suggest, /submit, /search, /about, /healthz, /readyz, /livez, "
        "/opensearch.xml.",
    ),
    405: ("method_not_allowed", "The Allow header names the methods of this address."),
}


class Problem(HTTPException):
    """An answer that says what is wrong and what to do about it."""

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        super().__init__(status, message)
        self.code, self.hint = code, hint

    def response(self) -> JSONResponse:
        """Return it as an answer."""
        return problem(self.status_code, self.code, self.detail, self.hint)


def problem(status: int, code: str, message: str, hint: str) -> JSONResponse:
    """Return the one shape that errors have."""
    error = {"code": code, "message": message, "hint": hint}
    return JSONResponse({"error": error}, status, {**SECURITY_HEADERS, "Cache-Control": "no-store"})


def on_http_error(request: Request, error: Exception) -> JSONResponse:
    """Answer a `Problem`, or what Starlette raises for unknown addresses and methods."""
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return error.response()
    code, hint = _DEFAULTS.get(error.status_code, _DEFAULTS[400])
    response = problem(error.status_code, code, error.detail + ".", hint)
    response.headers.update(error.headers or {})
    return response


def on_no_store(request: Request, error: Exception) -> JSONResponse:
    """Answer that the store fails, and how."""
    return problem(
        503, "no_store", f"The store fails: {error}.",
        "Nothing was kept: send the same again. If it stays, look at the store's disk or server.",
    )  # fmt: skip


def crash() -> JSONResponse:
    """Answer an error of ours; the traceback goes to the log, without the request."""
    return problem(
        500, "internal", "Something went wrong on our side.", "Try again; if it stays, report it."
    )


def on_crash(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of ours."""
    return crash()


def refuse_other_origins(headers: Headers) -> None:
    """Raise `Problem` if a browser says that another site's page sent this."""
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site", "same-origin")
    foreign = origin is not None and urlsplit(origin).netloc != headers.get("host")
    if foreign or site not in ("same-origin", "none"):
        raise Problem(
            403, "cross_origin", "Posts from other sites are refused.", "Post from our own page."
        )


class Hosts:
    """The names that requests may call us by: only those are answered, against DNS rebinding.

    Starlette's TrustedHostMiddleware does this too, but its errors are plain text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower() for name in names}
        self._known: set[str] = set()

    def named(self, scope: Scope) -> str:
        """Return the host that a request calls us by, with its port; raise `Problem` if not us."""
        given = ""
        for name, value in scope["headers"]:
            if name == b"host":
                given = value.decode("latin-1")
        if given not in self._known:
            host = _HOST.fullmatch(given)
            if host is None or host["name"].lower().strip("[]") not in self._names:
                raise Problem(
                    400, "unknown_host", "This service does not go by that name.",
                    "Use 127.0.0.1 or localhost, or start it with --host.",
                )  # fmt: skip
            if len(self._known) < MAX_KNOWN:
                self._known.add(given)
        return given


class Guard:
    """Middleware: answers only to our own names, and adds security headers."""

    def __init__(self, app: ASGIApp, *, hosts: Hosts) -> None:
        self.app = app
        self.hosts = hosts

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

        try:
            self.hosts.named(scope)
        except Problem as error:
            return await error.response()(scope, receive, send)
        await self.app(scope, receive, send_with_headers)
