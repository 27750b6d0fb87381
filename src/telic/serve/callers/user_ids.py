"""Whose request it is, and the id under which that user is kept, apart from other tenants'."""

from dataclasses import dataclass

from telic.completion.fit.tenants import DEFAULT
from telic.serve.http.errors import Problem


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as proved by what the request carries."""

    tenant: str = ""
    """Empty where there are no keys."""
    user: str | None = None
    """The only user that may be asked for; None for any of the tenant's."""
    admin: bool = False
    editor: bool = False

    def names(self, user: str) -> str:
        """Return the id under which a tenant's user is kept here, apart from other tenants'.

        Raises
        ------
        Problem
            If this is not the user whom the token proves.
        """
        if self.user is not None and user not in ("", self.user):
            raise Problem(
                403,
                "another_user",
                "The token is another user's.",
                "Leave 'user' out, or sign one.",
            )
        user = self.user or user
        if not user or not self.tenant or (self.tenant == DEFAULT and ":" not in user):
            return user
        return f"{self.tenant}:{user}"


def tenant_of(user: str) -> str:
    """Return the tenant of a user, by the id that `Caller.names` gave."""
    tenant, colon, _ = user.partition(":")
    return tenant if colon else DEFAULT


NOBODY = Caller(admin=True)
"""Whoever asks where there are no keys: everybody may all."""
