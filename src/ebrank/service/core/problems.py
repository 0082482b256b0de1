"""What can be wrong with a request, worded so that the caller can fix it.

The engine raises these; the HTTP layer responds with their status and text.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebrank.errors import EBRankError


class Problem(EBRankError):
    """A request that cannot be served.

    Attributes:
        status: of the HTTP answer.
        code: a short name for programs.
        field: the part of the request at fault, or None.
    """

    status = 422
    code = "unprocessable"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class NotFound(Problem):
    """Something named in the URL is unknown."""

    status = 404
    code = "not_found"


def listed(names: Sequence[str]) -> str:
    """Return the first ten of some names, for people."""
    others = f" and {len(names) - 10} others" if len(names) > 10 else ""
    return ", ".join(repr(name) for name in names[:10]) + others


def withdrawn(names: Sequence[str], *, everywhere: bool) -> Problem:
    """Return the problem that a request names withdrawn items."""
    source, target = "this query", "PUT /v1/queries/{query}/items"
    if everywhere:
        source, target = "the catalog", "PUT /v1/items"
    return Problem(f"withdrawn from {source}: {listed(names)}. {target} brings them back", "items")


def not_candidates(names: Sequence[str]) -> Problem:
    """Return the problem that a request names items which its query does not have."""
    return Problem(f"not candidates of this query: {listed(names)}", "items")


def unknown_query(name: str) -> NotFound:
    """Return the problem that a query never had candidates."""
    return NotFound(f"unknown query {name!r}: put items first", "query")
