"""What an endpoint is, and which one an address means.

Names in an address may hold anything, a slash too, if it is percent-encoded; so an address is cut
at its slashes first and decoded after.

>>> async def show(call: Request) -> object: ...
>>> router = Router([Route("GET", "/v1/queries/{query}", show)])
>>> route, parts = router.find("GET", b"/v1/queries/tea%2Fgreen")
>>> route.names(parts)
{'query': 'tea/green'}
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote

import msgspec

from ebrank.service import api
from ebrank.service.http.problems import BadRequest, Invalid, NoSuchPage, WrongMethod, unreadable

if TYPE_CHECKING:
    from ebrank.service.core.engine import Engine

PARTS: Mapping[str, Any] = {
    "query": api.Query,
    "item": api.Name,
    "version": Annotated[int, msgspec.Meta(ge=0, le=2**31)],
    "file": api.Name,
}
"""Types of the variable parts of addresses, by name."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was let in.

    Attributes:
        engine: which serves it.
        names: the variable parts of the address, as their types.
        data: the body, as the route reads it.
        host: the name by which the caller knows the server.
    """

    engine: Engine
    names: Mapping[str, Any]
    data: Any
    host: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that is not JSON of a struct."""

    content: bytes
    media_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """An endpoint; the documentation is made from it.

    Attributes:
        method: of HTTP.
        path: with its variable parts in braces, see `PARTS`.
        handle: returns the answer: a struct, or a `Page`.
        scopes: a token with any of these opens it; without any, it is open to everybody.
        reads: the type of the body.
        gives: the type of the answer.
        read: turns the body into what `handle` gets; by default a value of the type `reads`.
        errors: statuses it answers with, beyond those every route has.
        example: a body to try.
        waits: whether it can only be served once the engine has started.
        hidden: whether the documentation leaves it out.
    """

    method: str
    path: str
    handle: Callable[[Request], Awaitable[object]]
    scopes: tuple[str, ...] = ()
    reads: Any = None
    gives: Any = None
    read: Callable[[bytes], Any] | None = None
    errors: tuple[int, ...] = ()
    example: Any = None
    waits: bool = True
    hidden: bool = False

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The path, cut at its slashes."""
        return tuple(self.path[1:].split("/"))

    @cached_property
    def decode(self) -> Callable[[bytes], Any]:
        """What turns a body into what `handle` gets; raises `msgspec.DecodeError`."""
        return self.read or msgspec.json.Decoder(self.reads).decode

    @property
    def name(self) -> str:
        """What the documentation calls it."""
        return str(getattr(self.handle, "__name__", self.path))

    @property
    def about(self) -> str:
        """What it does, in the words of its function."""
        return " ".join((self.handle.__doc__ or "").split())

    def names(self, parts: Sequence[str]) -> dict[str, Any]:
        """Return the variable parts of an address that matched, decoded.

        Raises:
            BadRequest: if one is not UTF-8.
            Invalid: if one is not what its type says.
        """
        return {
            one[1:-1]: _name(one[1:-1], part)
            for one, part in zip(self.parts, parts, strict=True)
            if one.startswith("{")
        }

    def data(self, body: bytes) -> Any:  # noqa: ANN401 (as the route reads it)
        """Return the body as `handle` gets it.

        Raises:
            BadRequest: if it is not JSON, or too deep.
            Invalid: if it is not what the type says.
        """
        if self.reads is None:
            return None
        try:
            return self.decode(body)
        except msgspec.DecodeError as problem:
            raise unreadable(problem) from None
        except RecursionError:
            raise BadRequest("the body is nested too deeply to be read") from None


class Router:
    """Finds the route of an address."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = list(routes)
        self._fixed = {(one.method, one.path): one for one in self.routes if "{" not in one.path}

    def find(self, method: str, raw_path: bytes) -> tuple[Route, tuple[str, ...]]:
        """Return the route and the parts of the address, as they were sent.

        Raises:
            NoSuchPage: if there is none.
            WrongMethod: if there is one for other methods.
            BadRequest: if the address is not UTF-8.
        """
        try:
            path = raw_path.decode()
        except UnicodeDecodeError:
            raise BadRequest("the address is not UTF-8") from None
        wanted = "GET" if method == "HEAD" else method
        parts = tuple(path[1:].split("/"))
        route = self._fixed.get((wanted, path))
        if route is not None:
            return route, parts
        near = [one for one in self.routes if _matches(one.parts, parts)]
        for one in near:
            if one.method == wanted:
                return one, parts
        if not near:
            raise NoSuchPage("there is nothing at this address; /docs lists what there is")
        allowed = ", ".join(sorted({one.method for one in near}))
        raise WrongMethod(f"this address is for {allowed}", headers={"allow": allowed})


def _matches(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    return len(pattern) == len(parts) and all(
        part != "" if one.startswith("{") else one == part
        for one, part in zip(pattern, parts, strict=True)
    )


def _name(kind: str, part: str) -> Any:  # noqa: ANN401 (as `PARTS` says)
    try:
        return msgspec.convert(unquote(part, errors="strict"), PARTS[kind], strict=False)
    except UnicodeDecodeError:
        raise BadRequest("the address is not UTF-8 once its % signs are decoded", kind) from None
    except msgspec.ValidationError as problem:
        raise Invalid(str(problem), kind) from None
