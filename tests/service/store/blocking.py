"""Stores for tests that are not coroutines: every call is waited for."""

from __future__ import annotations

import asyncio
import atexit
import inspect
from collections.abc import AsyncIterator
from typing import Any

_RUNNER = asyncio.Runner()
atexit.register(_RUNNER.close)


def run(call: Any) -> Any:  # noqa: ANN401 (whatever it gives)
    """Return what a coroutine returns, or all that an iterator yields."""
    return _RUNNER.run(_listed(call) if hasattr(call, "__aiter__") else call)


async def _listed(values: AsyncIterator[Any]) -> list[Any]:
    return [value async for value in values]


class Blocking:
    """A store, or a group of its methods, whose calls return what they are awaited for."""

    def __init__(self, wrapped: Any) -> None:  # noqa: ANN401
        self.wrapped = wrapped
        for name in ("items", "log", "models", "meta"):
            if hasattr(wrapped, name):
                setattr(self, name, Blocking(getattr(wrapped, name)))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever the store has)
        value = getattr(self.wrapped, name)
        return value if not inspect.ismethod(value) else lambda *a, **k: run(value(*a, **k))
