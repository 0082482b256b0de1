"""The OpenAPI document, generated from the table of routes and the types that decode requests.

The document forbids whatever the decoder rejects: lengths, ranges, unknown fields. `page` shows it
as plain HTML, without scripts or network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from http import HTTPStatus
from importlib import resources
from inspect import cleandoc
from string import Template
from typing import Any

import msgspec

from ebrank import __version__
from ebrank.service import api
from ebrank.service.api import ErrorResponse
from ebrank.service.endpoints import ENDPOINTS, JSON, PARTS, Endpoint, about
from ebrank.service.meanings import meanings

_FILES = resources.files("ebrank.service.http")
STYLE = (_FILES / "docs.css").read_bytes()
PAGE = Template((_FILES / "docs.html").read_text(encoding="utf-8"))
_REF = "#/components/schemas/{name}"
_VARIABLE = re.compile(r"{(\w+)}")
_NAMES = {"query": "tea", "item": "sencha", "version": "1", "name": "prices"}
"""What stands in examples for the variable parts of URLs."""


def document() -> dict[str, Any]:
    """Return the document of all endpoints that are not hidden."""
    shown = {name: endpoint for name, endpoint in ENDPOINTS.items() if not endpoint.hidden}
    paths: dict[str, dict[str, Any]] = {}
    for name, endpoint in shown.items():
        operation = _operation(name, endpoint)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "EBRank",
            "version": __version__,
            "summary": "Rank with user behavior without burying what is new.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": _components(shown.values()),
            "securitySchemes": {"token": _TOKEN},
        },
    }


_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Create one with `ebrank serve --new-token`. Not needed if the server "
    "listens on a loopback address and has no tokens.",
}


def _operation(name: str, endpoint: Endpoint[Any]) -> dict[str, Any]:
    meaning = about(name)
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": meaning.partition(". ")[0].rstrip("."),
        "description": meaning,
        "responses": {"200": _response("OK", endpoint.gives)}
        | {
            str(status): _response(HTTPStatus(status).phrase, ErrorResponse)
            for status in statuses(endpoint)
        },
    }
    parameters = list(_parameters(endpoint))
    if parameters:
        operation["parameters"] = parameters
    if endpoint.reads is not None:
        content = {"schema": _schema(endpoint.reads), "example": endpoint.sample}
        operation["requestBody"] = {"required": True, "content": {endpoint.accepts: content}}
    if endpoint.scopes:
        operation["security"] = [{"token": []}, {}]
        operation["x-scopes"] = list(endpoint.scopes)
    return operation


def statuses(endpoint: Endpoint[Any]) -> list[int]:
    """Return the error statuses that an endpoint may return."""
    errors = set(endpoint.errors)
    named = "{" in endpoint.path
    if named:
        errors |= {404}
    if named or endpoint.reads is not None or endpoint.takes is not None:
        errors |= {400, 422}
    if endpoint.scopes:
        errors |= {401, 403, 429, 503}
    if endpoint.reads is not None:
        errors |= {408, 409, 413, 415}
    return sorted(errors)


def _response(description: str, kind: Any) -> dict[str, Any]:  # noqa: ANN401 (any type)
    """Return what a response of a type is; bytes are a page."""
    page = {"text/plain": {"schema": {"type": "string"}}}
    content = page if kind is bytes else {JSON: {"schema": _schema(kind)}}
    return {"description": description, "content": content}


def _parameters(endpoint: Endpoint[Any]) -> Iterator[dict[str, Any]]:
    """Yield the variable parts of an endpoint's path, then what may follow `?`."""
    for name in _VARIABLE.findall(endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": _schema(PARTS[name])}
    if endpoint.takes is not None:
        [schema] = msgspec.json.schema(endpoint.takes)["$defs"].values()
        _describe(schema, endpoint.takes)
        for name, kind in schema["properties"].items():
            yield {"name": name, "in": "query", "required": False, "schema": kind}


@cache  # most routes share their errors
def _schema(kind: Any) -> dict[str, Any]:  # noqa: ANN401 (any type)
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _components(endpoints: Iterable[Endpoint[Any]]) -> dict[str, Any]:
    kinds = [kind for one in endpoints for kind in (one.reads, one.gives)]
    _, components = msgspec.json.schema_components(
        [*filter(None, kinds), ErrorResponse], ref_template=_REF
    )
    for name, schema in components.items():
        schema["description"] = cleandoc(schema.get("description", ""))
        _describe(schema, getattr(api, name))
    return components


def _describe(schema: Mapping[str, Any], struct: type) -> None:
    """Add the meaning of each field of a struct to its schema."""
    for field, meaning in meanings(struct).items():
        schema["properties"][field]["description"] = meaning


# --- the page ---


def page(document: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI document."""
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    contents = (
        f'<li><code><span class="method">{method}</span>'
        f'<a href="#{escape(operation["operationId"])}">{escape(path)}</a></code></li>'
        for method, path, operation in operations
    )
    return PAGE.substitute(
        version=escape(document["info"]["version"]),
        contents="".join(contents),
        operations="\n".join(_operation_html(*operation) for operation in operations),
        types="\n".join(_types(document["components"]["schemas"])),
    )


def _operation_html(method: str, path: str, operation: Mapping[str, Any]) -> str:
    scopes = escape(" or ".join(operation.get("x-scopes", ())))
    return (
        f'<h2 id="{escape(operation["operationId"])}"><code>'
        f'<span class="method">{method}</span>{escape(path)}</code></h2>'
        f"<p>{_prose(operation['description'])}</p>"
        + (f"<p>Needs a token with scope {scopes}.</p>" if scopes else "")
        + f"<pre>{escape(_curl(method, path, operation))}</pre>"
        f"<p>{_bodies(operation)}</p>"
    )


def _prose(text: str) -> str:
    """Return a description as HTML, with text in backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _curl(method: str, path: str, operation: Mapping[str, Any]) -> str:
    line = f"curl -X {method} $EBRANK{path.format(**_NAMES)}"
    body = operation.get("requestBody")
    if body is None:
        return line
    return f"{line} -d '\n{json.dumps(_content(body)['example'], indent=2)}'"


def _bodies(operation: Mapping[str, Any]) -> str:
    parts = []
    if "requestBody" in operation:
        parts.append(f"Request: {_type(_content(operation['requestBody'])['schema'])}.")
    parts.append(f"Response: {_type(_content(operation['responses']['200'])['schema'])}.")
    errors = [status for status in operation["responses"] if status != "200"]
    if errors:
        parts.append(f"Errors: {', '.join(errors)}.")
    return " ".join(parts)


def _content(body: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = next(iter(body["content"].values()))
    return content


def _types(schemas: Mapping[str, Any]) -> Iterator[str]:
    for name, schema in schemas.items():
        yield f'<h3 id="type-{escape(name)}">{escape(name)}</h3>'
        yield f"<p>{_prose(schema.get('description', ''))}</p><table>"
        required = schema.get("required", ())
        for field, kind in schema.get("properties", {}).items():
            need = "" if field in required else ", optional"
            meaning = _prose(kind.get("description", ""))
            yield (
                f"<tr><td><code>{escape(field)}</code></td><td>{_type(kind)}{need}</td>"
                f"<td>{meaning}</td></tr>"
            )
        yield "</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """Return a schema in a few words, types linked."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#type-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"<code>{escape(json.dumps(value))}</code>" for value in schema["enum"])
    words = escape(str(schema.get("format") or schema.get("type", "anything")))
    if isinstance(schema.get("items"), Mapping):
        words += f" of {_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        words += f" of {_type(schema['additionalProperties'])}"
    limits = [f"{label} {schema[key]:,}" for key, label in _LIMITS.items() if key in schema]
    return words + (f" ({', '.join(limits)})" if limits else "")


_LIMITS = {
    "minimum": "from",
    "maximum": "to",
    "minLength": "length from",
    "maxLength": "to",
    "minItems": "from",
    "maxItems": "to",
}
