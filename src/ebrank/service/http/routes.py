"""Which endpoint a URL means, and how requests are read and responses are written.

Names in a URL may hold anything, even a slash, if it is percent-encoded; so a URL is first split at
its slashes and then decoded.

>>> from ebrank.service.endpoints import ENDPOINTS
>>> route, parts = Router(ENDPOINTS).find("GET", b"/v1/queries/tea%2Fgreen")
>>> route.name, route.names(parts)
('query', ['tea/green'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec

from ebrank.service import api
from ebrank.service.endpoints import JSON, PARTS, Endpoint
from ebrank.service.http.problems import HttpProblem, unreadable

SAFE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every response; a page may have its own policy."""

READERS: Mapping[Any, Callable[[bytes], Any]] = {
    api.PutItemsRequest: api.read_items,
    api.FeedbackRequest: api.read_events,
}
"""What decodes a body, by its type; others become one value of their type."""


@dataclass(frozen=True, slots=True)
class Page:
    """A response as it is sent."""

    content: bytes
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> list[tuple[bytes, bytes]]:
        """Return all its headers."""
        own = {"content-type": self.media_type, "content-length": str(len(self.content))}
        headers = {**SAFE, **own, **self.headers}
        return [(key.encode("latin-1"), value.encode("latin-1")) for key, value in headers.items()]


@dataclass(frozen=True)
class Route:
    """An endpoint by its name, and how its requests are read."""

    name: str
    endpoint: Endpoint[Any]

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The path, split at its slashes."""
        return tuple(self.endpoint.path[1:].split("/"))

    @cached_property
    def _decode(self) -> Callable[[bytes], Any]:
        reads = self.endpoint.reads
        return READERS.get(reads) or msgspec.json.Decoder(reads).decode

    def names(self, parts: Sequence[str]) -> list[Any]:
        """Return the variable parts of a URL that matched, decoded.

        Raises:
            HttpProblem: 400 if one is not UTF-8.
            HttpProblem: 422 if one is not what its type says.
        """
        return [
            _name(pattern[1:-1], part)
            for pattern, part in zip(self.parts, parts, strict=True)
            if pattern.startswith("{")
        ]

    def options(self, query_string: bytes) -> list[Any]:
        """Return what follows `?` in a URL, if the endpoint takes it.

        Raises:
            HttpProblem: 400 if it is not UTF-8.
            HttpProblem: 422 if it is not what the type says.
        """
        takes = self.endpoint.takes
        if takes is None:
            return []
        try:
            pairs = parse_qsl(query_string.decode(), keep_blank_values=True, errors="strict")
            return [msgspec.convert(dict(pairs), takes, strict=False)]
        except UnicodeDecodeError:
            raise HttpProblem(400, "the query string is not UTF-8") from None
        except msgspec.ValidationError as problem:
            raise unreadable(problem) from None

    def data(self, body: bytes) -> Any:  # noqa: ANN401 (as the endpoint reads it)
        """Return the content of a body.

        Raises:
            HttpProblem: 400 if it is not JSON, not UTF-8, or too deep.
            HttpProblem: 422 if it is not what the type says.
        """
        try:
            return self._decode(body)
        except msgspec.DecodeError as problem:
            raise unreadable(problem) from None
        except UnicodeDecodeError:
            place = api.not_utf8(body)
            raise HttpProblem(
                400, f"the body is not UTF-8 at byte {place:,}, counted from 0"
            ) from None
        except RecursionError:
            raise HttpProblem(400, "the body is nested too deeply to be read") from None


class Router:
    """Finds the route of a URL."""

    def __init__(self, endpoints: Mapping[str, Endpoint[Any]]) -> None:
        self._routes = [Route(name, endpoint) for name, endpoint in endpoints.items()]
        self._fixed = {
            (route.endpoint.method, route.endpoint.path): route
            for route in self._routes
            if "{" not in route.endpoint.path
        }

    def find(self, method: str, raw_path: bytes) -> tuple[Route, tuple[str, ...]]:
        """Return the route and the parts of the URL, as they were sent.

        Raises:
            HttpProblem: 404 if there is none.
            HttpProblem: 405 if there is one for other methods.
            HttpProblem: 400 if the URL is not UTF-8.
        """
        try:
            path = raw_path.decode()
        except UnicodeDecodeError:
            raise HttpProblem(400, "the URL is not UTF-8") from None
        wanted = "GET" if method == "HEAD" else method
        parts = tuple(path[1:].split("/"))
        route = self._fixed.get((wanted, path))
        if route is not None:
            return route, parts
        near = {
            route.endpoint.method: route for route in self._routes if _matches(route.parts, parts)
        }
        if wanted in near:
            return near[wanted], parts
        if not near:
            raise HttpProblem(404, "nothing found at this URL; /docs lists all endpoints")
        allowed = ", ".join(sorted(near))
        raise HttpProblem(405, f"this URL accepts only {allowed}", headers={"allow": allowed})


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return len(pattern) == len(parts) and all(
        part != "" if fixed.startswith("{") else fixed == part
        for fixed, part in zip(pattern, parts, strict=True)
    )


def _name(kind: str, part: str) -> Any:  # noqa: ANN401 (as `PARTS` says)
    try:
        return msgspec.convert(unquote(part, errors="strict"), PARTS[kind], strict=False)
    except UnicodeDecodeError:
        raise HttpProblem(400, "the URL is not UTF-8 after percent-decoding", kind) from None
    except msgspec.ValidationError as problem:
        raise HttpProblem(422, str(problem), kind) from None
