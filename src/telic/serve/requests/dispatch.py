"""Keystrokes and submissions answered, here or by the process that owns the user."""

import asyncio
import json
from functools import lru_cache
from itertools import chain
from typing import Any, Self

import numpy as np

from telic.completion import Completer, Suggestion
from telic.completion.box.suggestion import Listed
from telic.completion.engine.array_kernels import joined_texts
from telic.serve.http import inputs
from telic.serve.http.connections import Connections
from telic.serve.http.errors import Problem
from telic.serve.operation.settings import Settings
from telic.serve.requests.between_workers import PeerError, Peers, WorkerPlace
from telic.serve.requests.listed_phrases import lists_in_json
from telic.serve.state.forgotten_users import ForgottenUsers
from telic.serve.state.open_compositions import OpenCompositions
from telic.serve.state.store import Outcome, StoreError

KEPT_BYTES = 8 << 20
"""Memory of the answers to nobody in particular that are kept; most of them are asked for again."""
_ENTRY = 512
"""What such an answer takes besides its characters."""
_NO_APPS: tuple[Any, ...] = (None, [{}, []])
_QUERY_ALONE = {"q", "user"}
"""What is given where nothing is known of who asks; the user is empty. Of these `_answer` checks
the query's length alone."""


class Desk:
    """Answers what requests ask, once they have been read.

    Parameters
    ----------
    compositions : OpenCompositions
    settings : Settings
    place : WorkerPlace
    connections : Connections
        They take those that other processes hand over.
    forgotten : ForgottenUsers, optional
        What forgets users in this process.
    """

    def __init__(
        self,
        compositions: OpenCompositions,
        settings: Settings,
        place: WorkerPlace,
        connections: Connections,
        forgotten: ForgottenUsers | None = None,
    ) -> None:
        self._forgotten, self._others = forgotten, set(range(place.workers)) - {place.index}
        self._compositions, self._settings = compositions, settings
        self._kept = _KeptAnswers()
        lists_in_json(joined_texts([b""]), b"")  # so that nobody waits for its kernel
        self.peers = Peers(place, self._for_a_peer, connections.adopt)

    def owner(self, given: dict[str, str]) -> int | None:
        """Return the other process that owns a keystroke; None if it is answered here."""
        user = given.get("user", "")
        return self.peers.elsewhere(user) if user and given.get("composition") else None

    async def suggest(
        self, given: dict[str, str], base: str, apps: list[Any] | None = None, address: str = ""
    ) -> bytes:
        """Return the body that answers a keystroke.

        Parameters
        ----------
        given : dict of str to str
            The request's parameters.
        base : str
            The address that results' addresses begin with.
        apps : list, optional
            What a phone says is installed and was opened.
        address : str
            The client's.
        """
        owner = self.owner(given)
        if owner is not None:
            try:
                kind, *answer = await self.peers.ask(owner, ["suggest", given, base, apps, address])
            except PeerError:
                pass  # it is being started anew: its compositions begin again, here
            else:
                if kind == "problem":
                    raise Problem(*answer)
                return str(answer[0]).encode()
        return await self._suggest(given, base, apps, address)

    async def submit(self, query: str, user: str, composition: str) -> Outcome:
        """Return what became of a submission; raise StoreError if it is not stored."""
        owner = self.peers.elsewhere(user)
        if owner is not None:
            try:
                request = ["submit", query, user, composition]
                kind, *answer = await self.peers.ask(owner, request)
            except PeerError:
                pass  # whether it was stored is not known; it counts once
            else:
                if kind == "problem":
                    raise StoreError(answer[0])
                return Outcome(*answer)
        return await self._compositions.submit(query, user, composition)

    async def forget(self, user: str) -> dict[str, Any]:
        """Forget a user in every process, in the store and in files; say what there was.

        Raises
        ------
        StoreError
            If that is not done, or not known in time: ask again.
        InputError, ModelError
            If the model folder cannot be written, or read.
        """
        assert self._forgotten is not None
        number = 0
        try:
            await self._all(["forget", user])
            rows, number = await self._forgotten.delete(user)
        finally:
            await self._all(["forgotten", user, number])
        records, in_model = await self._forgotten.erase(user)
        return {"rows": rows, "records": records, "model": in_model}

    async def _all(self, request: list[Any]) -> None:
        """Let every process do something; one that is just being started has nothing to do."""
        asked = [self.peers.ask(other, request) for other in self._others]
        try:
            async with asyncio.timeout(2 * self._settings.write_seconds):
                answers = await asyncio.gather(
                    self._for_a_peer(request), *asked, return_exceptions=True
                )
        except TimeoutError:
            raise StoreError("a process does not answer in time") from None
        for answer in answers:
            if isinstance(answer, BaseException):
                if not isinstance(answer, PeerError):
                    raise answer
            elif answer[0] == "problem":
                raise StoreError(answer[1])

    async def _for_a_peer(self, request: list[Any]) -> list[Any]:
        kind, *asked = request
        try:
            if kind == "suggest":
                return ["answer", (await self._suggest(*asked)).decode()]
            if self._forgotten and kind == "forget":
                await self._forgotten.begin(*asked)
                return ["answer"]
            if self._forgotten and kind == "forgotten":
                self._forgotten.end(*asked)
                return ["answer"]
            outcome = await self._compositions.submit(*asked)
            return ["answer", outcome.learned, outcome.updates]
        except Problem as error:
            return ["problem", error.status_code, error.code, error.detail, error.hint]
        except StoreError as error:
            return ["problem", str(error)]

    async def _suggest(
        self, given: dict[str, str], base: str, apps: list[Any] | None, address: str
    ) -> bytes:
        completer = self._compositions.completer
        # Signals look at the time, too.
        if given["user"] or completer.signals or apps not in _NO_APPS:
            return await self._answer(given, base, apps, address)
        kept = self._kept.of(completer, completer.live.version)
        asked = (base, apps is None, *given.items())
        body = kept.bodies.get(asked)
        if body is None:
            if given.keys() <= _QUERY_ALONE and self._compositions.plain:
                query = inputs.text(given.get("q", ""), "q", self._settings.max_query)
                body = _written(query, base, self._compositions.static(query))
            else:
                body = await self._answer(given, base, apps, address)
            kept.add(asked, body)
        return body

    async def _answer(
        self, given: dict[str, str], base: str, apps: list[Any] | None, address: str
    ) -> bytes:
        compositions, limit = self._compositions, self._settings.max_id
        contexts, records = compositions.completer.contexts, compositions.completer.records
        named = contexts.names if contexts else ()
        ours = {"tenant"} if self._settings.keys else set()  # a key's, though no phrase has one
        inputs.known(given.keys() - ours, (*inputs.KEYSTROKE, *named))
        query = inputs.text(given.get("q", ""), "q", self._settings.max_query)
        user = given.get("user", "")
        composition = inputs.storable(given.get("composition", ""), "composition", limit)
        phone = inputs.phone(compositions.completer, *apps) if apps else None
        explain = given.get("explain") == "1"
        where = {name: inputs.text(given[name], name, limit) for name in named if name in given}
        boost = inputs.boosts(given.get("boost", ""), contexts, self._settings)
        found: Listed | None = None
        if user and composition:
            client = inputs.seconds(given.get("t"))
            typing = compositions.find(user, composition)
            if typing is None:
                consent = self._settings.record_unasked or given.get("consent") == "1"
                typing = await compositions.open(
                    user, composition, phone, where, boost, consent=consent, address=address
                )
            found = compositions.suggest(typing, query, client=client)
        elif explain or phone or where or boost or not compositions.plain:
            found = compositions.nobody(query, phone, where, boost)
        carried = ""
        if found is not None and (explain or records):
            told = [
                {"text": each.text, "id": each.id, "payload": each.payload}
                | (_explained(each) if explain else {})
                for each in found.suggestions()
            ]
            carried = ", " + json.dumps({"suggestions": told})
        if found is None:
            return _written(query, base, compositions.static(query))
        numbers, index = found.numbers, found.keystroke.completer.index
        if max(numbers, default=0) < len(index):
            texts = index.spelled(np.array(numbers, np.int64))
        else:
            texts = joined_texts([text.encode() for text in found.texts_of(numbers)])
        return _written(query, base, texts, carried)


def _written(
    query: str, base: str, texts: tuple[np.ndarray, np.ndarray], carried: str = ""
) -> bytes:
    """Return an answer's JSON; what was typed is escaped: half a character is no UTF-8."""
    lists = lists_in_json(texts, _address(base))
    return b"[%b, %b%b]" % (json.dumps(query).encode(), lists, carried.encode())


@lru_cache(64)
def _address(base: str) -> bytes:
    """Return what the address of a search begins with, as JSON has it."""
    return json.dumps(base + "search?q=")[1:-1].encode()


class _KeptAnswers:
    """Answers by what was asked, as long as the list of phrases stays as it is."""

    def __init__(self) -> None:
        self.bodies: dict[tuple[Any, ...], bytes] = {}
        self._bytes = 0
        self._list: tuple[Completer, int] | None = None

    def of(self, completer: Completer, version: int) -> Self:
        """Return those of a list, which is changed with each version."""
        if self._list is None or self._list[0] is not completer or self._list[1] != version:
            self._list, self.bodies, self._bytes = (completer, version), {}, 0
        return self

    def add(self, asked: tuple[Any, ...], body: bytes) -> None:
        """Keep an answer; where there are too many, begin anew."""
        size = len(body) + sum(map(len, chain.from_iterable(asked[2:]))) + _ENTRY
        if self._bytes + size > KEPT_BYTES:
            self.bodies, self._bytes = {}, 0
        self.bodies[asked] = body
        self._bytes += size


def _explained(suggestion: Suggestion) -> dict[str, Any]:
    why = suggestion.explain()
    return {
        "relevance": suggestion.relevance,
        "feedback": suggestion.feedback,
        "static_position": suggestion.static_position,
        "reasons": why.reasons,
        "observed": why.observed,
        "apps": suggestion.apps,
        "app_reasons": why.apps,
        "signals": suggestion.signals,
        "signal_reasons": why.signals,
        "signals_said": why.line,
    }
