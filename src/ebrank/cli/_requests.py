"""Requests that commands make themselves, checked like those that a server gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ebrank.errors import ParameterError

if TYPE_CHECKING:
    import msgspec

Request = TypeVar("Request", bound="msgspec.Struct")


def checked(request: Request) -> Request:
    """Return a request that its own type allows: constructors check nothing.

    Raises:
        ParameterError: if a server would refuse it, for the same reason.
    """
    import msgspec

    from ebrank.service.http.problems import unreadable

    try:
        return msgspec.convert(msgspec.to_builtins(request), type(request))
    except msgspec.ValidationError as problem:
        refusal = unreadable(problem)
        raise ParameterError(f"{refusal.field}: {refusal}") from None
