"""A span for each request, sent by OpenTelemetry; addresses' parameters are no part of it."""

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from telic.errors import InputError


class Traced:
    """Middleware that records each request as a span, whose parent the client may name.

    Parameters
    ----------
    app : ASGI application
    provider : TracerProvider, optional
        By default one that sends to where OTEL_EXPORTER_OTLP_ENDPOINT says.

    Raises
    ------
    InputError
        If OpenTelemetry is not installed.
    """

    def __init__(self, app: ASGIApp, provider: Any = None) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.propagate import extract

            self._provider = provider or _exporting()
        except ImportError as error:
            raise InputError(
                f"--traces needs the package {error.name}. Install: pip install telic[telemetry]"
            ) from None
        self._app, self._extract, self._kind = app, extract, trace.SpanKind.SERVER
        self._tracer = self._provider.get_tracer("telic.serve")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        method, path = scope["method"], scope["path"]
        with self._tracer.start_as_current_span(
            f"{method} {path}"[:80], self._extract(headers), self._kind, record_exception=False
        ) as span:
            span.set_attributes({"http.request.method": method, "url.path": path[:80]})

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                await send(message)

            # An answer that is written without `send` would have no status here.
            await self._app({**scope, "extensions": {}}, receive, watched)


def _exporting() -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "telic"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
