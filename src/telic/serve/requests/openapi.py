"""The service's OpenAPI 3.1 description, written from its routes and its settings."""

from collections.abc import Sequence
from inspect import getdoc
from typing import Any

from starlette.routing import BaseRoute, Route

import telic
from telic.serve.http.inputs import KEYSTROKE
from telic.serve.operation.settings import Settings
from telic.serve.state.dashboard_figures import MAX_DAYS
from telic.serve.state.phrase_changes import MOST

Json = dict[str, Any]
_ERRORS = {
    "400": "not one of our names, or a request cut short",
    "401": "no key or token, or a wrong one",
    "403": "not with this key, token or origin",
    "413": "too large",
    "415": "not JSON",
    "409": "at odds with what was stored before",
    "422": "a value that cannot be used",
    "429": "too often; see Retry-After",
    "500": "an error of ours",
    "503": "the store fails: send the same again, it counts once",
}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_SUGGESTION = {
    "type": "object",
    "required": ["text", "id", "payload"],
    "properties": {"text": _TEXT, "id": {"type": ["string", "null"]}},
}


def _object(**properties: Json) -> Json:
    """Describe an object that has all of these."""
    return {"type": "object", "required": list(properties), "properties": properties}


_LIST = {
    "description": "query, texts, descriptions, addresses of results, and an object of what else "
    "was asked for",
    "type": "array",
    "minItems": 4,
    "maxItems": 5,
    # By place (prefixItems) would say more, but not every tool reads that.
    "items": {
        "anyOf": [
            _TEXT,
            {"type": "array", "items": _TEXT, "maxItems": 10},
            _object(suggestions={"type": "array", "items": _SUGGESTION}),
        ]
    },
}
_STATUS = _object(status={"const": "ok"})
_STORABLE = {"type": "string", "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"}
_CHANGE = {
    "type": "object",
    "description": "a phrase, and its popularity, by how much that grows, or that it is deleted",
    "required": ["phrase"],
    "oneOf": [{"required": [kind]} for kind in ("popularity", "by", "delete")],
    "additionalProperties": False,
    "properties": {
        "phrase": _TEXT | {"minLength": 1},
        "popularity": {"type": "number", "minimum": 0},
        "by": {"type": "number", "minimum": 0},
        "delete": {"const": True},
    },
}
LOCKED = ("/suggest", "/submit", "/phrases", "/forget", "/about", "/metrics", "/figures")
"""What needs a key or a token where there are keys."""
_JSON = "application/json"
_SUGGESTIONS = "application/x-suggestions+json"
ANSWERS: dict[tuple[str, str], tuple[str, Json]] = {
    ("GET", "/"): ("text/html", _TEXT),
    ("GET", "/search"): ("text/html", _TEXT),
    ("GET", "/phones"): ("text/html", _TEXT),
    ("GET", "/suggest"): (_SUGGESTIONS, _LIST),
    ("POST", "/suggest"): (_SUGGESTIONS, _LIST),
    ("POST", "/submit"): (_JSON, _object(learned={"type": "boolean"}, updates=_COUNT)),
    ("POST", "/visitor"): (_JSON, _object(user=_TEXT, token=_TEXT, expires={"type": "number"})),
    ("POST", "/phrases"): (_JSON, _object(number={"type": "integer", "minimum": 1})),
    ("POST", "/forget"): (_JSON, _object(rows=_COUNT, records=_COUNT, model={"type": "boolean"})),
    ("GET", "/about"): (_JSON, {"type": "object"}),
    ("GET", "/healthz"): (_JSON, _STATUS),
    ("GET", "/readyz"): (_JSON, _STATUS),
    ("GET", "/livez"): (_JSON, _STATUS),
    ("GET", "/figures"): (_JSON, {"type": "object"}),
    ("GET", "/dashboard"): ("text/html", _TEXT),
    ("GET", "/metrics"): ("text/plain", _TEXT),
    ("GET", "/opensearch.xml"): ("application/opensearchdescription+xml", _TEXT),
    ("GET", "/openapi.json"): (_JSON, {"type": "object"}),
}


def openapi(routes: Sequence[BaseRoute], settings: Settings) -> Json:
    """Return the description of an application's routes.

    Parameters
    ----------
    routes : sequence of starlette.routing.BaseRoute
        Mounted folders are left out.
    settings : Settings
        Their limits are the values' limits.
    """
    paths: dict[str, Json] = {}
    for route in routes:
        if isinstance(route, Route):
            for method in sorted((route.methods or set()) - {"HEAD"}):
                operation = _operation(method, route, settings)
                paths.setdefault(route.path, {})[method.lower()] = operation
    error = _object(error=_object(code=_TEXT, message=_TEXT, hint=_TEXT))
    described: Json = {
        "openapi": "3.1.0",
        "info": {"title": "telic search box", "version": telic.__version__},
        "paths": paths,
        "components": {"schemas": {"Error": error}},
    }
    if settings.keys:
        described["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"}
        }
    return described


def _operation(method: str, route: Route, settings: Settings) -> Json:
    kind, schema = ANSWERS[method, route.path]
    error = {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    said = getdoc(route.endpoint) or ""
    operation: Json = {
        "summary": said.partition("\n")[0],
        "responses": {
            "200": {"description": "done", "content": {kind: {"schema": schema}}},
            **{status: {"description": why, "content": error} for status, why in _ERRORS.items()},
        },
    }
    values = _values(settings)
    if method == "GET" and route.path in ("/suggest", "/search"):
        names = ("q",) if route.path == "/search" else KEYSTROKE
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": values[name]} for name in names
        ]
    if route.path == "/figures":
        days = {"type": "integer", "minimum": 1, "maximum": MAX_DAYS}
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in {"days": days, "tenant": values["user"]}.items()
        ]
    if method == "POST" and route.path != "/visitor":
        operation["requestBody"] = {
            "required": True,
            "content": {_JSON: {"schema": _body(route.path, values, settings)}},
        }
    if settings.keys and route.path in LOCKED:
        operation["security"] = [{"bearer": []}]
    return operation


def _values(settings: Settings) -> Json:
    named = _STORABLE | {"maxLength": settings.max_id}
    return {
        "q": {"type": "string", "maxLength": settings.max_query},
        "user": named,
        "composition": named,
        "t": {"type": "number", "minimum": 0, "maximum": 1e15},
        "explain": {"enum": ["0", "1"]},
        "consent": {"enum": ["0", "1"]},
        "query": _STORABLE | {"minLength": 1, "maxLength": settings.max_query},
        "boost": {"type": "string", "description": "JSON, as it is posted"},
    }


def _body(path: str, values: Json, settings: Settings) -> Json:
    if path == "/submit":
        names = ("user", "composition", "query")
        return _object(**{name: values[name] | {"minLength": 1} for name in names})
    if path == "/forget":
        return _object(user=_STORABLE | {"minLength": 1, "maxLength": settings.max_body})
    if path == "/phrases":
        changes = {"type": "array", "minItems": 1, "maxItems": MOST, "items": _CHANGE}
        properties = {"id": values["composition"] | {"minLength": 1}, "changes": changes}
        return {
            "type": "object",
            "required": ["id", "changes"],
            "additionalProperties": False,
            "properties": properties,
        }
    properties = {name: values[name] for name in KEYSTROKE}
    properties["explain"] = properties["consent"] = {"type": "boolean"}
    properties["boost"] = {
        "type": "object",
        "description": "factors by value of a context, by context",
        "additionalProperties": {
            "type": "object",
            "additionalProperties": {
                "type": "number",
                "minimum": 1 / settings.max_boost,
                "maximum": settings.max_boost,
            },
        },
    }
    properties["installed"] = {
        "type": "object",
        "description": "openings a day by app",
        "additionalProperties": {"type": "number", "minimum": 0},
    }
    properties["opened"] = {
        "type": "array",
        "description": "pairs of an app and minutes since it was opened",
        "items": {"type": "array", "minItems": 2, "maxItems": 2},
    }
    context = {"type": ["string", "null"], "description": "a context of the phrases: its value"}
    return {"type": "object", "properties": properties, "additionalProperties": context}
