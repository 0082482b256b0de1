"""What can be wrong with a request before it reaches the engine, and the form of error responses.

Every error is JSON of one shape, with a code for programs and a sentence for people:

>>> error_response(TooLarge("the body has more than 1024 bytes")).error.code
'too_large'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from ebrank.service.core.problems import Problem


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong: a code, a sentence, and the part of the request at fault, if it is one."""

    code: str
    message: str
    field: str | UnsetType = UNSET


class ErrorResponse(msgspec.Struct, frozen=True):
    """The response to a request that cannot be served."""

    error: ErrorBody


class HttpProblem(Problem):
    """A problem of the transport; may carry headers."""

    def __init__(
        self,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, field)
        self.headers = dict(headers or {})


class BadRequest(HttpProblem):
    """Not JSON, or a URL that is not text."""

    status = 400
    code = "bad_request"


class Invalid(HttpProblem):
    """JSON, but not what the schema says."""

    status = 422
    code = "invalid"


class Unauthorized(HttpProblem):
    """No token, or an unknown one."""

    status = 401
    code = "unauthorized"


class Forbidden(HttpProblem):
    """A known token without the scope, or a page of another site."""

    status = 403
    code = "forbidden"


class NoSuchPage(HttpProblem):
    """An unknown URL."""

    status = 404
    code = "not_found"


class WrongMethod(HttpProblem):
    """A URL that does not allow this method."""

    status = 405
    code = "method_not_allowed"


class TooSlow(HttpProblem):
    """The body did not arrive in time."""

    status = 408
    code = "timeout"


class WriteConflict(HttpProblem):
    """Another write came first, again and again: the request may be sent again."""

    status = 409
    code = "conflict"


class TooLarge(HttpProblem):
    """More bytes than the limit."""

    status = 413
    code = "too_large"


class Encoded(HttpProblem):
    """A compressed body."""

    status = 415
    code = "encoded"


class TooLargeHead(HttpProblem):
    """URL and headers have too many bytes."""

    status = 431
    code = "head_too_large"


class TooMany(HttpProblem):
    """More requests than the limit."""

    status = 429
    code = "too_many_requests"


class Unavailable(HttpProblem):
    """The server starts or closes, or the store cannot be used: the request may be sent again."""

    status = 503
    code = "unavailable"


class Bug(HttpProblem):
    """Our mistake; the server's log has the details."""

    status = 500
    code = "internal"


def error_response(problem: Problem) -> ErrorResponse:
    """Return the body of a response."""
    return ErrorResponse(ErrorBody(problem.code, str(problem), problem.field or UNSET))


_PLACE = re.compile(r" - at (?:`key` in )?`\$?\.?(.*)`$")
_FIELD = re.compile(r"(?:unknown|required) field `(.*?)`")


def unreadable(problem: msgspec.DecodeError) -> HttpProblem:
    """Return the problem with a body that the decoder rejected.

    >>> from ebrank.service.api import RankRequest
    >>> try:
    ...     msgspec.json.decode(b'{"query": "tea", "k": "3"}', type=RankRequest)
    ... except msgspec.DecodeError as problem:
    ...     answer = unreadable(problem)
    >>> answer.status, answer.field, str(answer)
    (422, 'k', 'Expected `int | null`, got `str`')
    """
    text = str(problem)
    if not isinstance(problem, msgspec.ValidationError):
        return BadRequest(f"the body is not JSON: {text}")
    place, named = _PLACE.search(text), _FIELD.search(text)
    path = [match.group(1) for match in (place, named) if match is not None and match.group(1)]
    return Invalid(text[: place.start()] if place else text, ".".join(path) or None)
