"""The one shape of an error."""

from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from telic.serve.http.security_headers import SECURITY_HEADERS

_DEFAULTS = {
    400: ("bad_request", "Look at the request again."),
    404: (
        "not_found",
        "See /, /phones, /suggest, /submit, /visitor, /phrases, /forget, /search, /about, "
        "/healthz, /readyz, /livez, /metrics, /figures, /dashboard, /opensearch.xml, "
        "/openapi.json.",
    ),
    405: ("method_not_allowed", "The Allow header names the methods of this address."),
}


class Problem(HTTPException):
    """An answer that says what is wrong and what to do about it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.code, self.hint = code, hint

    def response(self) -> JSONResponse:
        """Return it as an answer."""
        answer = problem(self.status_code, self.code, self.detail, self.hint)
        answer.headers.update(self.headers or {})
        if self.status_code == 401:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer


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
        "It may have been kept all the same: send it again, it counts once. "
        "If it stays, look at the store's disk or server.",
    )  # fmt: skip


def crash() -> JSONResponse:
    """Answer an error of ours; the traceback goes to the log, without the request."""
    return problem(
        500, "internal", "Something went wrong on our side.", "Try again; if it stays, report it."
    )


def on_crash(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of ours."""
    return crash()
