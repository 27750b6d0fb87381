"""What is counted, by whom it may be read, and that it agrees with what was done."""

import sys
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from unittest.mock import MagicMock

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import create_engine
from starlette.testclient import TestClient

from telic.errors import InputError
from telic.serve import create_app
from telic.serve.callers.tenant_keys import add_key
from telic.serve.operation import traces
from telic.serve.operation.metrics import Metrics, Seen
from telic.serve.operation.traces import Traced
from telic.serve.process import server

ADA = {"user": "ada", "composition": "c"}


def counted(client, **headers):
    """Every sample, by its name and labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def search(client, typed, query, composition):
    keys = ADA | {"composition": composition}
    shown = []
    for end in range(1, len(typed) + 1):
        shown = client.get("/suggest", params=keys | {"q": typed[:end]}).json()[1]
    assert client.post("/submit", json=keys | {"query": query}).status_code == 200
    return shown.index(query) + 1 if query in shown else 0


def test_acceptance_ranks_and_keystrokes_saved(client, settings):
    search(client, "sal", "salad", "1")
    place = search(client, "sal", "salsify", "2")
    search(client, "soup", "soup", "3")  # typed to its end: in the list, but not taken from it
    search(client, "q", "quince", "4")
    for _ in range(2):  # the same again counts once
        client.post("/submit", json=ADA | {"composition": "5", "query": "soup"})
    found = counted(client)
    # By whether it was taken from a list, and whether one stood before it.
    for (accepted, listed), count in {("true", "true"): 2, ("false", "true"): 2}.items():
        assert found["telic_submissions_total", accepted, listed, "open", ""] == count
    assert found["telic_submissions_total", "false", "false", "open", ""] == 1
    assert found["telic_keystrokes_saved_total", ""] == len("ad") + len("sify")
    assert found["telic_characters_total", ""] == len("saladsalsifysoupquince")
    assert found["telic_reciprocal_ranks_total", ""] == pytest.approx(1 / 2 + 1 / place + 1)
    engine = create_engine(settings.database)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT typed, rank, accepted FROM submissions ORDER BY composition"
        ).fetchall()
    engine.dispose()
    assert rows == [(3, 2, 1), (3, place, 1), (4, 1, 0), (1, 0, 0), (None, None, None)]


def test_requests_are_counted_by_address_and_status(client):
    for path in ("/suggest?q=s", "/suggest?q=" + "s" * 300, "/secret", "/other"):
        client.get(path)
    found = counted(client)
    assert found["telic_requests_total", "/suggest", "200"] == 1
    assert found["telic_requests_total", "/suggest", "422"] == 1
    assert found["telic_requests_total", "other", "404"] == 2
    assert found["telic_request_seconds_count", "/suggest"] == 2
    assert not any("secret" in name for key in found for name in key)


def test_quantiles_lie_evenly_between_the_bounds_of_their_bucket():
    metrics = Metrics(("/suggest",))
    assert metrics.latency() == []
    took = [0.0015] * 60 + [0.003] * 30 + [0.2] * 10  # in (1, 2], (2, 5] and (100, 250] ms
    for seconds in took:
        metrics.request("/suggest", 200, seconds)
    metrics.request("/elsewhere", 404, 60.0)
    found, other = metrics.latency()
    assert (found["address"], found["answers"]) == ("/suggest", 100)
    assert found["mean"] == pytest.approx(np.mean(took))
    assert found["p50"] == pytest.approx(0.001 + 0.001 * 50 / 60)
    assert found["p99"] == pytest.approx(0.1 + 0.15 * 9 / 10)
    assert (other["address"], other["p50"], other["p99"]) == ("other", 10.0, 10.0)


def test_state_is_a_gauge(client):
    assert counted(client)["telic_open_compositions",] == 0
    client.get("/suggest", params=ADA | {"q": "s"})
    found = counted(client)
    assert found["telic_open_compositions",] == 1
    assert found["telic_store_up",] == 1
    assert client.post("/submit", json=ADA | {"query": "soup"}).status_code == 200
    assert counted(client)["telic_open_compositions",] == 0
    gates = {key[1]: value for key, value in found.items() if key[0] == "telic_gate_open"}
    assert gates
    assert set(gates.values()) == {1.0}
    client.app.journal._outages._metrics.store(False)
    assert counted(client)["telic_store_up",] == 0


def test_only_an_admins_key_reads_them(completer, settings, tmp_path):
    file = tmp_path / "keys.toml"
    shop, admin = add_key(file, "shop"), add_key(file, "ops", admin=True)
    app = create_app(completer, replace(settings, keys=str(file)))
    with TestClient(app, "http://127.0.0.1:8000") as client:
        assert client.get("/metrics").status_code == 401
        own = {"authorization": f"Bearer {shop}"}
        assert client.get("/metrics", headers=own).status_code == 403
        client.post("/submit", json=ADA | {"query": "soup"}, headers=own)
        found = counted(client, authorization=f"Bearer {admin}")
        assert found["telic_submissions_total", "false", "false", "open", "shop"] == 1


@pytest.mark.parametrize(
    ("seen", "saved"),
    [(Seen(2, 1, 3, True), 2), (Seen(4, 1, 3, False), 0), (Seen(9, 1, 3, True), 0)],
)
def test_keystrokes_saved_are_what_was_not_typed(seen, saved):
    assert seen.saved("soup") == saved


def test_held_submissions_are_told_apart():
    metrics = Metrics()
    metrics.submission("", "soup", None, held=True)
    labels = b'accepted="false",listed="false",running_check="held",tenant=""'
    assert labels + b"} 1.0" in metrics.exposition()


def test_a_request_is_a_span_without_its_parameters(completer, settings):
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    app = Traced(create_app(completer, settings), provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with TestClient(app, "http://127.0.0.1:8000") as client:
        client.get("/suggest?q=secret", headers={"traceparent": parent})
        client.get("/nowhere")
    first, second = exporter.get_finished_spans()
    assert first.name == "GET /suggest"
    assert dict(first.attributes) == {
        "http.request.method": "GET", "url.path": "/suggest", "http.response.status_code": 200
    }  # fmt: skip
    assert format(first.context.trace_id, "032x") == parent.split("-")[1]
    assert second.attributes["http.response.status_code"] == 404
    assert "secret" not in first.to_json()
    provider.shutdown()


def test_spans_go_out_under_our_name(monkeypatch):
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    sent = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        monkeypatch.setenv(
            "OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}"
        )
        Thread(target=collector.handle_request, daemon=True).start()
        provider = traces._exporting()
        provider.get_tracer("telic.serve").start_span("GET /healthz").end()
        assert provider.force_flush(20_000)
        provider.shutdown()
    ((path, content),) = sent
    assert path == "/v1/traces"
    assert b"telic" in content
    assert b"GET /healthz" in content
    monkeypatch.setitem(sys.modules, "opentelemetry.propagate", None)
    with pytest.raises(InputError, match=r"--traces needs .*pip install telic\[telemetry\]"):
        traces.Traced(None)


@pytest.mark.parametrize("wanted", [False, True])
def test_requests_are_spans_where_that_is_asked_for(completer, settings, monkeypatch, wanted):
    monkeypatch.setattr(traces, "_exporting", MagicMock())
    first = create_app(completer, settings)
    made = server._swapping(first, replace(settings, traces=wanted), None)
    assert isinstance(made.config.app, traces.Traced) == wanted
    swapping = made.config.app._app if wanted else made.config.app
    assert swapping.current is first
