"""The OpenAPI document, generated from the table of routes and the types that decode requests.

The document forbids whatever the decoder rejects: lengths, ranges, unknown fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec

from ebrank import __version__
from ebrank.service.api import ErrorResponse
from ebrank.service.http.routes import PARTS, Route

_REF = "#/components/schemas/{name}"
_VARIABLE = re.compile(r"{(\w+)}")


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """Return the document of all routes that are not hidden."""
    shown = [route for route in routes if not route.hidden]
    paths: dict[str, dict[str, Any]] = {}
    for route in shown:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "EBRank",
            "version": __version__,
            "summary": "Rank with user behavior without burying what is new.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {"schemas": _components(shown), "securitySchemes": {"token": _TOKEN}},
    }


_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Create one with `ebrank serve --new-token`. Not needed if the server "
    "listens on a loopback address and has no tokens.",
}


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.about.partition(". ")[0].rstrip("."),
        "description": route.about,
        "responses": {"200": _answer(route)}
        | {str(status): _error(status) for status in statuses(route)},
    }
    parameters = [_parameter(name) for name in _VARIABLE.findall(route.path)] + _options(route)
    if parameters:
        operation["parameters"] = parameters
    if route.reads is not None:
        content: dict[str, Any] = {"schema": _schema(route.reads)}
        if route.example is not None:
            content["example"] = route.example
        operation["requestBody"] = {"required": True, "content": {route.accepts: content}}
    if route.scopes:
        operation["security"] = [{"token": []}, {}]
        operation["x-scopes"] = list(route.scopes)
    return operation


def statuses(route: Route) -> list[int]:
    """Return the error statuses that a route may return."""
    found = set(route.errors)
    if _VARIABLE.search(route.path) or route.reads is not None or route.takes is not None:
        found |= {400, 422}
    if route.scopes:
        found |= {401, 403, 429, 503}
    if route.reads is not None:
        found |= {408, 409, 413, 415}
    return sorted(found)


def _answer(route: Route) -> dict[str, Any]:
    if route.gives is None:
        return {"description": "OK", "content": {"text/plain": {"schema": {"type": "string"}}}}
    return {"description": "OK", "content": {"application/json": {"schema": _schema(route.gives)}}}


def _error(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": {"schema": _schema(ErrorResponse)}},
    }


def _parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _schema(PARTS[name])}


def _options(route: Route) -> list[dict[str, Any]]:
    if route.takes is None:
        return []
    [schema] = msgspec.json.schema(route.takes)["$defs"].values()
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in schema["properties"].items()
    ]


@cache  # most routes share their errors
def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 (any type)
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _components(routes: Iterable[Route]) -> dict[str, Any]:
    kinds = [kind for one in routes for kind in (one.reads, one.gives) if kind is not None]
    _, components = msgspec.json.schema_components([*kinds, ErrorResponse], ref_template=_REF)
    for schema in components.values():
        schema["description"] = cleandoc(schema.get("description", ""))
    return components
