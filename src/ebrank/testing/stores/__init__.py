"""What every store must do.

    from ebrank.service import store
    from ebrank.testing import check_store

    check_store(lambda name: store.open(f"mypackage.mystore:MyStore:{folder}/{name}"))

`MemoryStore` is the reference that others are compared with. `check_one` runs one of `CHECKS`: each
coroutine function in a module of `GROUPS` is a check, and its docstring the rule.
"""

from __future__ import annotations

import asyncio
from inspect import iscoroutinefunction

from ebrank.testing.stores import deletions, items, log, meta, whole
from ebrank.testing.stores.checking import Check, Open, Stores

GROUPS = (items, log, meta, whole, deletions)
CHECKS: dict[str, Check] = {
    name: check
    for group in GROUPS
    for name, check in vars(group).items()
    if iscoroutinefunction(check) and check.__module__ == group.__name__ and name[0] != "_"
}
"""All checks by name, in order."""


def check_store(open: Open, *, keeps: bool = True) -> None:
    """Raise an `AssertionError` unless stores obey all rules; takes a few seconds.

    Args:
        open: opens the store with a name.
        keeps: whether a store that is closed and opened again holds what it held.
    """
    for name in CHECKS:
        check_one(name, open, keeps=keeps)


def check_one(name: str, open: Open, *, keeps: bool = True) -> None:
    """Run one of `CHECKS`."""
    try:
        asyncio.run(Stores(open, name, keeps=keeps).run(CHECKS[name]))
    except Exception as problem:
        about = " ".join((CHECKS[name].__doc__ or "").split())
        what = "" if isinstance(problem, AssertionError) else f"{type(problem).__name__}: "
        raise AssertionError(f"{name}: {about} But {what}{problem}") from problem
