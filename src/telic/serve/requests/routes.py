"""The addresses of the service."""

from html import escape
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

import telic
from telic.completion.learning.do_no_harm import gate_facts
from telic.errors import TelicError
from telic.serve.callers.access import Access
from telic.serve.callers.hosts_and_origins import refuse_other_origins
from telic.serve.callers.user_ids import Caller
from telic.serve.http import inputs
from telic.serve.http.errors import Problem
from telic.serve.operation.metrics import MEDIA_TYPE as MEDIA_TYPE_OF_METRICS
from telic.serve.operation.metrics import Metrics
from telic.serve.operation.settings import Settings
from telic.serve.requests.dispatch import Desk
from telic.serve.requests.keystroke import KeystrokeRoute
from telic.serve.requests.openapi import ANSWERS, openapi
from telic.serve.state.dashboard_figures import MAX_DAYS
from telic.serve.state.group_commit import Journal
from telic.serve.state.open_compositions import OpenCompositions
from telic.serve.state.phrase_changes import Changes, checked_changes
from telic.serve.state.row_trimming import RowTrimming
from telic.serve.state.store import StoreError

PAGE = files("telic.serve") / "page"
ADDRESSES = {path for _, path in ANSWERS}
OPENSEARCH = """\
<?xml version="1.0" encoding="UTF-8"?>
<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
  <ShortName>telic</ShortName>
  <Description>Suggestions while you type</Description>
  <InputEncoding>UTF-8</InputEncoding>
  <Url type="text/html" template="{base}search?q={{searchTerms}}"/>
  <Url type="application/x-suggestions+json" template="{base}suggest?q={{searchTerms}}"/>
</OpenSearchDescription>
"""


class Addresses:
    """The answers, one method for each address."""

    def __init__(
        self,
        compositions: OpenCompositions,
        journal: Journal,
        desk: Desk,
        keystroke: KeystrokeRoute,
        access: Access,
        settings: Settings,
        metrics: Metrics,
        changes: Changes,
        bounds: RowTrimming,
    ) -> None:
        self._metrics, self.changes, self._bounds = metrics, changes, bounds
        self.compositions, self.journal, self.desk = compositions, journal, desk
        self.keystroke, self.access, self.settings = keystroke, access, settings

    def routes(self) -> list[BaseRoute]:
        """Return the addresses."""
        return [
            Route("/", self.page),
            Route("/search", self.search),
            Route("/suggest", self.keystroke, methods=["GET", "POST"]),
            Route("/phones", self.phones),
            Route("/submit", self.submit, methods=["POST"]),
            Route("/visitor", self.visitor, methods=["POST"]),
            Route("/phrases", self.phrases, methods=["POST"]),
            Route("/forget", self.forget, methods=["POST"]),
            Route("/about", self.about),
            Route("/healthz", self.healthz),
            Route("/readyz", self.readyz),
            Route("/livez", self.livez),
            Route("/metrics", self.metrics),
            Route("/figures", self.figures),
            Route("/dashboard", self.dashboard),
            Route("/opensearch.xml", self.opensearch),
            Route("/openapi.json", self.openapi),
            Mount("/static", StaticFiles(packages=[("telic.serve", "page")])),
        ]

    async def submit(self, request: Request) -> Response:
        """Learn from a submission, once it is stored."""
        caller = self._caller(request)
        given = await inputs.json_object(request, self.settings)
        query = inputs.required(given, "query", self.settings.max_query)
        user = caller.user if given.get("user") is None else None
        user = caller.names(user or inputs.required(given, "user", self.settings.max_id))
        composition = inputs.required(given, "composition", self.settings.max_id)
        outcome = await self.desk.submit(query, user, composition)
        return JSONResponse({"learned": outcome.learned, "updates": outcome.updates})

    async def phrases(self, request: Request) -> Response:
        """Add phrases, change or count up their popularity, delete them: with an editor's key."""
        caller = self._caller(request)
        if not caller.editor:
            raise Problem(
                403,
                "no_editor",
                "The key is no editor's.",
                "Make one with: telic completion key TENANT --keys FILE --editor",
            )
        given = await inputs.json_object(request, self.settings)
        if not given.keys() <= {"id", "changes"}:
            raise Problem(
                422, "bad_change", "A batch has more than an id and changes.", "Leave the rest out."
            )
        id = inputs.required(given, "id", self.settings.max_id)
        changes = checked_changes(given.get("changes"), self.compositions.completer, self.settings)
        number = await self.changes.make(caller.names(id), changes)  # ids too are a tenant's own
        return JSONResponse({"number": number})

    async def forget(self, request: Request) -> Response:
        """Erase a user everywhere, with an admin's key; say how much there was."""
        _needs_admin(self._caller(request))
        given = await inputs.json_object(request, self.settings)
        # With a tenant's name, or from the log of a fit, an id may be longer than requests' own.
        user = inputs.required(given, "user", self.settings.max_body)
        try:
            return JSONResponse(await self.desk.forget(user))
        except TelicError as error:
            raise Problem(
                500,
                "model_not_written",
                f"The model folder still has the user: {error}",
                "All else is erased. Let the service write the folder, and send the same again.",
            ) from None

    async def visitor(self, request: Request) -> Response:
        """Make somebody a user, of a random id that nobody else can be."""
        refuse_other_origins(self.access, dict(request.scope["headers"]))
        made = self.access.visitor(request.scope, dict(request.scope["headers"]))
        return JSONResponse(made, headers={"Cache-Control": "no-store"})

    def _caller(self, request: Request) -> Caller:
        """Return who asks, from a page that may."""
        headers = dict(request.scope["headers"])
        refuse_other_origins(self.access, headers)
        return self.access.caller(request.scope, headers)

    async def page(self, request: Request) -> Response:
        """Return the page."""
        return _page("")

    async def search(self, request: Request) -> Response:
        """Return the page with the query filled in: where a browser's search bar leads."""
        given = inputs.parameters(request.scope["query_string"], self.settings)
        return _page(inputs.text(given.get("q", ""), "q", self.settings.max_query))

    async def phones(self, request: Request) -> Response:
        """Return the page with two phones side by side."""
        return HTMLResponse((PAGE / "phones.html").read_text(encoding="utf-8"))

    async def about(self, request: Request) -> Response:
        """Say what serves here, for people to judge what they see."""
        self.access.caller(request.scope, dict(request.scope["headers"]))
        completer = self.compositions.completer
        return JSONResponse(
            {
                "model": completer.model,
                "relevance": completer.relevance.name,
                "protocol": completer.protocol,
                "learned_popularity": completer.relevance.unlearned is not None,
                "candidates": completer.n,
                "phrases": len(completer.index),
                "apps": completer.telling_apps(),
                "simulated": completer.simulated,
                "trained_on": completer.trained_on,
                "feedback": completer.order_summary(),
                "gate": gate_facts(completer.gate),
                "running_check": completer.has_running_check,
                "records": self._records(),
                "version": telic.__version__,
            }
        )

    def _records(self) -> str:
        """Say whose compositions are recorded: nobody's, those of who consents, or everybody's."""
        if not self.settings.record:
            return "nobody"
        return "everybody" if self.settings.record_unasked else "who consents"

    async def healthz(self, request: Request) -> Response:
        """Say whether the service does all of its work, or what is wrong: for people and alarms."""
        await self.journal.check()
        if self.journal.problem:
            raise StoreError(self.journal.problem)
        found: dict[str, Any] = {"status": "ok", "open_compositions": len(self.compositions)}
        if self._bounds.reached:
            found["bounds_reached"] = self._bounds.reached
        return JSONResponse(found)

    async def readyz(self, request: Request) -> Response:
        """Say whether to send requests here; completions are answered without a store, too."""
        return JSONResponse({"status": "ok", "store": self.journal.problem or "ok"})

    async def livez(self, request: Request) -> Response:
        """Say that the process answers; if this fails it should be started anew."""
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Return what was counted: for Prometheus, with an admin's key."""
        _needs_admin(self.access.caller(request.scope, dict(request.scope["headers"])))
        return Response(self._metrics.exposition(), media_type=MEDIA_TYPE_OF_METRICS)

    async def dashboard(self, request: Request) -> Response:
        """Return the page of figures."""
        return HTMLResponse((PAGE / "dashboard.html").read_text(encoding="utf-8"))

    async def figures(self, request: Request) -> Response:
        """Return how the service does for a key's tenant; with an admin's for any, or all."""
        caller = self.access.caller(request.scope, dict(request.scope["headers"]))
        if caller.user is not None:
            raise Problem(403, "no_figures", "A user's token opens no figures.", "Ask with a key.")
        given = inputs.parameters(request.scope["query_string"], self.settings)
        inputs.known(given, ("days", "tenant"))
        days = inputs.whole(given.get("days", "28"), "days", MAX_DAYS)
        whose = inputs.storable(given.get("tenant", ""), "tenant", self.settings.max_id)
        tenant = whose or (None if caller.admin else caller.tenant)
        if tenant != caller.tenant:
            _needs_admin(caller)
        found = await self.journal.figures(tenant, days)
        gate = gate_facts(self.compositions.completer.gate)["ranges"]
        latency = self._metrics.latency() if caller.admin else []
        return JSONResponse(found | {"gate": gate, "latency": latency})

    async def openapi(self, request: Request) -> Response:
        """Describe these addresses, for machines."""
        return JSONResponse(openapi(self.routes(), self.settings))

    async def opensearch(self, request: Request) -> Response:
        """Describe the search, so that a browser can add it."""
        text = OPENSEARCH.format(base=escape(str(request.base_url)))
        return Response(text, media_type="application/opensearchdescription+xml")


def _page(query: str) -> Response:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace('value=""', f'value="{escape(query)}"', 1))


def _needs_admin(caller: Caller) -> None:
    if not caller.admin:
        raise Problem(403, "no_admin", "The key is no admin's.", "Ask with one that is.")
