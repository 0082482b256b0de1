"""What goes wrong between a client and its server."""

from __future__ import annotations

from ebrank.errors import EBRankError


class ServiceError(EBRankError):
    """The server refused a request, or could not be reached.

    Attributes:
        status: of the response; None if none came.
        code: a short name of the problem; `unreachable` if no response came.
        field: the part of the request at fault, if the server names one.
    """

    def __init__(
        self, message: str, *, status: int | None = None, code: str, field: str | None = None
    ) -> None:
        super().__init__(message if field is None else f"{field}: {message}")
        self.status = status
        self.code = code
        self.field = field
