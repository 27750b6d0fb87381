"""What a completer remembers of one user: weights, own queries, and whether re-ranking helps."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from operator import is_not
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from telic.completion.box.own_queries import OwnQueries
from telic.completion.engine.prefix_index import Place, PrefixIndex
from telic.completion.engine.rules import DenyList
from telic.completion.learning.do_no_harm import RunningCheck
from telic.completion.learning.relevance import Relevance
from telic.completion.signals.counts import CONTEXT
from telic.completion.signals.log_split import MINUTE

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer
    from telic.completion.box.live_changes import Live

_Parts = tuple[PrefixIndex, Relevance, DenyList | None, "Live"]
"""What a completer makes candidates of own queries from."""


@dataclass
class UserState:
    """What a completer remembers of one user between compositions."""

    weights: np.ndarray
    updates: int = 0
    """Submissions learned from online."""
    history: dict[str, float] = field(default_factory=dict)
    """Own submissions: query → count."""
    previous: str | None = None
    """The query submitted last."""
    last: dict[str, int] = field(default_factory=dict)
    """When each own query was submitted last, microseconds since 1970; signals look at it."""
    session: list[str] = field(default_factory=list)
    """The queries of the session that was last, the latest first; for signals, too."""
    reranks: bool = True
    """False where validation showed that feedback does not help this user."""
    check: RunningCheck = field(default_factory=RunningCheck)
    """What re-ranking was worth to this user lately."""
    _placed: tuple[tuple[PrefixIndex, DenyList | None] | None, dict[str, Place | None]] = field(
        default=(None, {}), repr=False, compare=False
    )

    _own: tuple[tuple[_Parts, tuple[int, int, float]] | None, OwnQueries] = field(
        default=(None, OwnQueries([], [], {}, [])), repr=False, compare=False
    )

    def places(self, index: PrefixIndex, deny: DenyList | None = None) -> dict[str, Place | None]:
        """Return where own queries belong in a catalogue; None if denied. Each is asked once."""
        for_these, before = self._placed
        if for_these is None or for_these[0] is not index or for_these[1] is not deny:
            before = {}

        def place(query: str) -> Place | None:
            if query in before:
                return before[query]
            return None if deny is not None and deny.denies(query) else index.place(query)

        known = {query: place(query) for query in self.history}
        self._placed = (index, deny), known  # of queries that were forgotten since, nothing
        return known

    def own_queries(self, completer: "Completer") -> OwnQueries:
        """Return the own queries as a completer's candidates; made anew where they have changed."""
        parts = completer.index, completer.relevance, completer.deny, completer.live
        counts = completer.live.version, len(self.history), sum(self.history.values())
        known = self._own[0]
        if known is None or known[1] != counts or any(map(is_not, known[0], parts)):
            self._own = (parts, counts), OwnQueries.of(completer, self)
        return self._own[1]

    def become(self, other: "UserState") -> None:
        """Take over another state in place: compositions that are open go on with it."""
        if self.history != other.history:  # by another query for a forgotten one, as long as before
            self._own = None, OwnQueries([], [], {}, [])
        for name in fields(self):
            if not name.name.startswith("_"):
                setattr(self, name.name, getattr(other, name.name))

    def latest_session(self, now: int, minutes: float) -> list[str]:
        """Return the session that a query begun now belongs to; so long without one ends it."""
        last = self.last.get(self.session[0], 0) if self.session else 0
        return self.session if now - last <= minutes * MINUTE else []

    def submitted(self, query: str, at: int, *, began: int, minutes: float) -> None:
        """Note when a query was submitted, and in which session."""
        self.session = [query, *self.latest_session(began, minutes)][:CONTEXT]
        self.last[query] = max(at, self.last.get(query, 0))

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON; `from_json` reads it back."""
        return {
            "weights": self.weights.tolist(),
            "updates": self.updates,
            "history": dict(self.history),
            "previous": self.previous,
            "last": dict(self.last),
            "session": list(self.session),
            "reranks": self.reranks,
            "check": asdict(self.check),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read back what `as_json` wrote."""
        weights = np.array(stored["weights"], float)
        check = RunningCheck(**stored.get("check", {}))
        return cls(**(dict(stored) | {"weights": weights, "check": check}))
