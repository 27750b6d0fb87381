"""The service's own description, and requests made from it."""

from dataclasses import replace

import jsonschema_rs
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

from telic.data.recognised_columns import RESERVED
from telic.serve import Settings, create_app, serving
from telic.serve.callers.tenant_keys import add_key
from telic.serve.callers.tokens import sign_user
from telic.serve.http import inputs
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


ADA = {"user": "ada", "composition": "c"}
CHANGES = [{"phrase": "tea", "popularity": 3}, {"phrase": "sun", "by": 1}]
BODIES = {
    "/suggest": (ADA | {"q": "s", "t": 1.5, "explain": True, "consent": False}, ()),
    "/submit": (ADA | {"query": "soup"}, ("user", "composition", "query")),
    "/forget": ({"user": "ada"}, ("user",)),
    "/phrases": ({"id": "1", "changes": CHANGES}, ("id", "changes")),
}
"""A body that is taken, and what it cannot do without."""


@pytest.mark.parametrize("path", BODIES)
def test_a_body_that_is_taken_is_as_described_and_one_that_is_not_is_refused(
    make_completer, settings, tmp_path, path
):
    key = add_key(tmp_path / "keys.toml", "desk", editor=True, admin=True)
    settings = replace(settings, keys=str(tmp_path / "keys.toml"), max_query=40, max_id=30)
    with TestClient(create_app(make_completer(), settings), "http://127.0.0.1:8000") as client:
        described = client.get("/openapi.json").json()["paths"][path]["post"]["requestBody"]
        schema = described["content"]["application/json"]["schema"]

        def asked(body):
            valid = jsonschema_rs.is_valid(schema, body)
            answer = client.post(path, json=body, headers={"Authorization": f"Bearer {key}"})
            return valid, answer.status_code

        good, needed = BODIES[path]
        assert asked(good) == (True, 200)
        assert asked([good]) == (False, 422)
        for name in needed:
            assert asked({n: v for n, v in good.items() if n != name}) == (False, 422)
            assert asked(good | {name: ""}) == (False, 422)
        for name, value in good.items():
            if isinstance(value, str):
                too_long = "x" * (41 if name in ("q", "query") else 31)
                refused = path != "/forget"  # a fitted model's ids may be of any length
                assert asked(good | {name: too_long}) == ((False, 422) if refused else (True, 200))
                assert asked(good | {name: 1}) == (False, 422)


@pytest.mark.parametrize("path", ["/suggest", "/phrases"])
def test_lists_and_numbers_in_a_body_are_as_described(make_completer, settings, tmp_path, path):
    key = add_key(tmp_path / "keys.toml", "desk", editor=True)
    settings = replace(settings, keys=str(tmp_path / "keys.toml"), max_boost=4.0)
    wrong = {
        "/suggest": [
            {"t": -1}, {"t": 1e16}, {"boost": {"x": {"y": 5.0}}},
            {"boost": {"x": {"y": 0.2}}}, {"installed": []}, {"opened": [["maps"]]},
        ],
        "/phrases": [
            {"changes": []}, {"changes": [{"phrase": "tea"}]}, {"more": 1},
            {"changes": [{"phrase": "tea", "by": 1, "popularity": 1}]},
            {"changes": [{"phrase": "tea", "by": -1}]}, {"changes": [{"by": 1}]},
            {"changes": [{"phrase": "tea", "delete": False}]}, {"changes": CHANGES * 251},
        ],
    }  # fmt: skip
    with TestClient(create_app(make_completer(), settings), "http://127.0.0.1:8000") as client:
        described = client.get("/openapi.json").json()["paths"][path]["post"]["requestBody"]
        schema = described["content"]["application/json"]["schema"]
        for body in wrong[path]:
            body = BODIES[path][0] | body
            answer = client.post(path, json=body, headers={"Authorization": f"Bearer {key}"})
            assert (jsonschema_rs.is_valid(schema, body), answer.status_code) == (False, 422), body


def test_no_context_of_a_list_may_have_the_name_of_a_parameter():
    assert {*inputs.KEYSTROKE} <= {*RESERVED, "user"}
