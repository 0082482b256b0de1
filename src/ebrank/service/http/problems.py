"""What can be wrong with a request before it reaches the engine, and the form of error responses.

Every error is JSON of one shape, with a code for programs and a sentence for people:

>>> error_response(HttpProblem(413, "the body has more than 1024 bytes")).error.code
'too_large'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from ebrank.service.api import ErrorBody, ErrorResponse
from ebrank.service.core.problems import Problem

CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    415: "encoded",
    422: "invalid",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
}
"""The codes of problems of the transport, by status."""


class HttpProblem(Problem):
    """A problem of the transport, with the status of its response; may carry headers."""

    def __init__(
        self,
        status: int,
        message: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, field)
        self.status = status
        self.code = CODES[status]
        self.headers = dict(headers or {})


def error_response(problem: Problem) -> ErrorResponse:
    """Return the body of a response."""
    return ErrorResponse(ErrorBody(problem.code, str(problem), problem.field))


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
        return HttpProblem(400, f"the body is not JSON: {text}")
    place, named = _PLACE.search(text), _FIELD.search(text)
    path = [match.group(1) for match in (place, named) if match is not None and match.group(1)]
    message = text[: place.start()] if place else text
    return HttpProblem(422, message, ".".join(path) or None)
