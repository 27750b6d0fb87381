"""The service's own description, and requests made from it."""

from dataclasses import replace

import pytest
import schemathesis
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route
from starlette.testclient import TestClient

from telic.serve import Settings, create_app, serving
from telic.serve.callers.tenant_keys import add_key
from telic.serve.callers.tokens import sign_user
from telic.serve.requests.openapi import ANSWERS, openapi

# Not among them: that whatever the description allows is accepted (a query of combining marks alone
# is blank), and that whatever it does not name is refused (parameters of others are ignored).
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def api(completer, tmp_path_factory):
    settings = Settings.beside(tmp_path_factory.mktemp("api") / "model", port=0)
    with serving(completer, settings) as address:
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.parametrize(("method", "path"), list(ANSWERS))
def test_answers_are_as_described(api, method, path):
    @examples(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(case=api[path][method].as_strategy())
    def ask(case):
        case.call_and_validate(checks=CHECKS)

    ask()


LOCKED = [
    ("GET", "/suggest"), ("POST", "/suggest"), ("POST", "/submit"), ("POST", "/phrases"),
    ("POST", "/forget"), ("GET", "/about"), ("GET", "/metrics"), ("GET", "/figures"),
]  # fmt: skip
"""What needs a key or a token, where there are keys."""


@pytest.fixture(scope="module")
def locked_api(make_completer, tmp_path_factory):
    """The description of a service with keys, a user's token and an editor's key."""
    folder = tmp_path_factory.mktemp("locked")
    key = add_key(folder / "keys.toml", "desk", editor=True, admin=True)
    settings = Settings.beside(folder / "model", port=0, keys=str(folder / "keys.toml"))
    with serving(make_completer(), settings) as address:
        api = schemathesis.openapi.from_url(f"{address}/openapi.json")
        yield api, {"user": sign_user(key, "ada"), "editor": key}


@pytest.mark.parametrize("who", ["user", "editor"])
@pytest.mark.parametrize(("method", "path"), LOCKED)
def test_answers_to_holders_of_keys_are_as_described(locked_api, method, path, who):
    api, proofs = locked_api
    headers = {"Authorization": f"Bearer {proofs[who]}"}
    statuses = set()

    @examples(max_examples=8, suppress_health_check=list(HealthCheck))
    @given(case=api[path][method].as_strategy())
    def ask(case):
        if isinstance(case.body, dict) and "user" in case.body:
            case.body["user"] = "ada"
        answer = case.call_and_validate(checks=[*CHECKS, ignored_auth], headers=headers)
        statuses.add(answer.status_code)

    ask()
    assert 401 not in statuses
    if path in ("/phrases", "/forget", "/metrics", "/figures"):
        assert (200 in statuses) == (who == "editor")


def test_every_route_is_described(client, completer, settings):
    described = client.get("/openapi.json").json()
    routes = [route for route in client.app.routes if isinstance(route, Route)]
    assert set(described["paths"]) == {route.path for route in routes}
    for route in routes:
        for method in route.methods - {"HEAD"}:
            operation = described["paths"][route.path][method.lower()]
            assert operation["summary"]
            assert {"200", "422", "500"} <= set(operation["responses"])
    q = described["paths"]["/suggest"]["get"]["parameters"][0]
    assert (q["name"], q["schema"]["maxLength"]) == ("q", settings.max_query)


def test_with_keys_it_says_what_needs_one(completer, settings, tmp_path):
    app = create_app(completer, settings)
    described = openapi(app.routes, replace(settings, keys="keys.toml"))
    locked = {path for path, each in described["paths"].items() if "security" in str(each)}
    assert locked == {path for _, path in LOCKED}


def test_a_keystroke_and_a_search_are_described_with_what_they_take(completer, settings):
    with TestClient(create_app(completer, settings), "http://127.0.0.1:8000") as client:
        paths = client.get("/openapi.json").json()["paths"]
    taken = {
        path: [one["name"] for one in paths[path]["get"]["parameters"]]
        for path in ("/search", "/suggest")
    }
    assert taken["/search"] == ["q"]
    assert {"q", "user", "composition", "t", "explain"} <= {*taken["/suggest"]}
    assert "parameters" not in paths["/about"]["get"] or not paths["/about"]["get"]["parameters"]
