"""Who may ask: keys, users' tokens, visitors, and whether not too often."""

import secrets
import time
from collections.abc import Callable

from starlette.types import Scope

from telic.completion.fit.tenants import DEFAULT
from telic.errors import InputError
from telic.serve.callers.rates import Rates, network_of
from telic.serve.callers.tenant_keys import Tenant, checked_origin, read_tenants
from telic.serve.callers.tokens import TokenError, digest_of, read_token, signed
from telic.serve.callers.user_ids import NOBODY, Caller
from telic.serve.http import inputs
from telic.serve.http.errors import Problem
from telic.serve.operation.settings import Settings

VISIT_SECONDS = 30 * 24 * 3600.0
"""How long a visitor's token is good for; the page asks for another before that."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Access:
    """Keys, tokens, origins and rates, as the settings have them.

    Parameters
    ----------
    settings : Settings
    clock : callable
        Seconds since 1970.

    Raises
    ------
    InputError
        If the file of keys cannot be used, or there is none although others can reach the service.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        if not settings.keys and settings.host not in LOOPBACK and not settings.without_keys:
            raise InputError(
                f"listening on {settings.host} without keys lets everybody who reaches it read and "
                "train any user. Make one with: telic completion key TENANT --keys FILE. "
                "Or say --without-keys."
            )
        self.by_address = Rates(settings.rate, settings.burst, settings.max_rated)
        self.by_key = Rates(settings.key_rate, settings.burst, settings.max_rated)
        self.reload()

    def reload(self) -> None:
        """Read the file of keys anew; what was stays if it cannot be used."""
        settings = self._settings
        tenants = read_tenants(settings.keys) if settings.keys else {}
        self.tenants = tenants
        self._keys = {digest: tenant for tenant in tenants.values() for digest in tenant.keys}
        self._short = {digest[:16]: digest for digest in self._keys}
        origins = (checked_origin(origin, "origins") for origin in settings.origins)
        open_to = Tenant(DEFAULT, visitors=True)
        self._origins = dict.fromkeys(origins, open_to) | {
            origin: tenant for tenant in tenants.values() for origin in tenant.origins
        }

    @property
    def keyless(self) -> bool:
        """Whether whoever reaches the service may do all."""
        return not self._settings.keys

    def admits(self, origin: str) -> bool:
        """Return whether another site's pages may ask."""
        return origin in self._origins

    def caller(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        """Return who asks; raise `Problem` if that is not proved, or if it is too often."""
        if self.keyless:
            self._limit(scope)
            return NOBODY
        given = headers.get(b"authorization", b"").decode("latin-1")
        kind, _, proof = given.partition(" ")
        if kind.lower() != "bearer":
            self._limit(scope)
            raise Problem(
                401, "no_key", "A key or a user's token is needed.",
                "Send 'Authorization: Bearer ...' with it.",
            )  # fmt: skip
        tenant = self._keys.get(digest_of(proof))
        if tenant is not None:
            _refuse(self.by_key.wait(tenant.name))
            return Caller(tenant.name, admin=tenant.admin, editor=tenant.editor)
        self._limit(scope)
        try:
            digest, user = read_token(proof, self._short, self._clock())
        except TokenError as error:
            raise Problem(401, "bad_token", str(error), "Ask for a new token.") from None
        user = inputs.required({"user": user}, "user", self._settings.max_id)
        return Caller(self._keys[digest].name, user)

    def identify(self, caller: Caller, given: dict[str, str]) -> None:
        """Put a user's name here, and the tenant's phrases, into a request's parameters."""
        user = inputs.storable(given.get("user", ""), "user", self._settings.max_id)
        given["user"] = caller.names(user)
        if caller.tenant:
            given["tenant"] = caller.tenant

    def visitor(self, scope: Scope, headers: dict[bytes, bytes]) -> dict[str, str | float]:
        """Return a new user, whom nobody can be but who has the token that comes with the id."""
        self._limit(scope)
        user = secrets.token_urlsafe(16)
        expires = self._clock() + VISIT_SECONDS
        if self.keyless:
            return {"user": user, "token": "", "expires": expires}
        tenant = self._origins.get(headers.get(b"origin", b"").decode("latin-1"))
        if tenant is None or not tenant.visitors or not tenant.keys:
            raise Problem(
                403, "no_visitors", "Pages of this origin have no visitors' tokens.",
                "Name the origin with: telic completion key TENANT --origin ... --visitors",
            )  # fmt: skip
        token = signed(tenant.keys[-1], user, expires)
        return {"user": user, "token": token, "expires": expires}

    def _limit(self, scope: Scope) -> None:
        if self._settings.rate:
            client = scope.get("client")
            _refuse(self.by_address.wait(network_of(client[0]) if client else ""))


def _refuse(seconds: int) -> None:
    if seconds:
        raise Problem(
            429, "too_often", "Too many requests.", f"Try again in {seconds} s.",
            headers={"Retry-After": str(seconds)},
        )  # fmt: skip
