"""What can be wrong with a request, told so that the caller can mend it.

The engine raises these; the HTTP layer answers with their status and text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ebrank.errors import EBRankError
from ebrank.service.store.base import StoreError


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
    """Something named in the address is not known."""

    status = 404
    code = "not_found"


class Unavailable(Problem):
    """The store cannot write now: nothing was changed, and the request may be sent again."""

    status = 503
    code = "unavailable"


@contextmanager
def unavailable() -> Iterator[None]:
    """Tell trouble with the store as a problem that the caller may wait out."""
    try:
        yield
    except StoreError as problem:
        raise Unavailable(str(problem)) from problem
