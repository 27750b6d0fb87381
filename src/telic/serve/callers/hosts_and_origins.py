"""Whom we answer: requests to our own names, from our own pages and those that may ask."""

import ipaddress
import re
from collections.abc import Iterable

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from telic.errors import InputError
from telic.serve.callers.access import Access
from telic.serve.http.errors import Problem
from telic.serve.http.security_headers import SECURITY_HEADERS

MAX_KNOWN = 100
"""Spellings of our own names, with ports, that are not looked at again."""
_HOST = re.compile(r"(?P<name>[^:@/\[\]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9._-]+")
PREFLIGHT_SECONDS = 7_200
"""How long a browser remembers what another site's page may do here."""
Headers = dict[bytes, bytes]


def refuse_other_origins(access: Access, headers: Headers) -> None:
    """Raise `Problem` if a browser says that a page sent this which may not ask."""
    origin = headers.get(b"origin")
    site = headers.get(b"sec-fetch-site", b"same-origin")
    if origin is not None:
        said = origin.decode("latin-1")
        if access.admits(said):
            return
        foreign = said.partition("://")[2].encode("latin-1") != headers.get(b"host")
    if (origin is not None and foreign) or site not in (b"same-origin", b"none"):
        raise Problem(
            403, "cross_origin", "Posts from this page's site are refused.",
            "Post from our own page, or name the page's origin: with keys, by telic completion key "
            "TENANT --origin ...; without, by --origins.",
        )  # fmt: skip


def cors_headers(access: Access, headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return what lets a browser show our answer to another site's page, if that may ask.

    Answers to no origin vary, too: a browser that keeps one would show it to a page in vain.
    """
    origin = headers.get(b"origin")
    if origin is None or not access.admits(origin.decode("latin-1")):
        return [(b"vary", b"Origin")]
    return [
        (b"vary", b"Origin"),
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"Retry-After"),
    ]


def checked_name(name: str) -> str:
    """Return a host name as requests have it; raise InputError if no request can have it."""
    usual = name.lower().strip("[]")
    if not _NAME.fullmatch(usual):
        try:
            ipaddress.IPv6Address(usual)
        except ValueError:
            raise InputError(
                f"names: {name!r} is no host name, expected one such as search.example: without "
                "https://, path and port, and in ASCII (xn--…)."
            ) from None
    return usual


class Hosts:
    """The names that requests may call us by: only those are answered, against DNS rebinding.

    Starlette's TrustedHostMiddleware does this too, but its errors are plain text.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name.lower() for name in names}
        self._known: set[str] = set()

    def named(self, headers: Headers) -> str:
        """Return the host that a request calls us by, with its port; raise `Problem` if not us."""
        given = headers.get(b"host", b"").decode("latin-1")
        if given not in self._known:
            host = _HOST.fullmatch(given)
            if host is None or host["name"].lower().strip("[]") not in self._names:
                raise Problem(
                    400, "unknown_host", "This service does not go by that name.",
                    "Use 127.0.0.1 or localhost, or start it with --names NAME.",
                )  # fmt: skip
            if len(self._known) < MAX_KNOWN:
                self._known.add(given)
        return given


class Guard:
    """Middleware: answers only to our own names, adds headers, answers browsers that ask first."""

    def __init__(self, app: ASGIApp, *, hosts: Hosts, access: Access) -> None:
        self.app, self.hosts, self.access = app, hosts, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        given: Headers = dict(scope["headers"])
        shared = cors_headers(self.access, given)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if scope["path"].startswith("/static/"):  # other sites' pages load the search box
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                message["headers"] = [*message["headers"], *shared]
            await send(message)

        try:
            self.hosts.named(given)
        except Problem as error:
            return await error.response()(scope, receive, send)
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in given:
            may = self.access.admits(given.get(b"origin", b"").decode("latin-1"))
            return await _preflight(may)(scope, receive, send_with_headers)
        await self.app(scope, receive, send_with_headers)


def _preflight(may: bool) -> Response:
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Response(status_code=204, headers=allowed if may else None)
