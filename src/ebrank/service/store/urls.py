"""Where a store is, as one line of text, and how it is opened.

| text | store |
|---|---|
| `sqlite:FOLDER`, or just a path | a folder of its own, see `sqlite`; to read, a backup will do |
| `postgresql://USER@HOST/DATABASE` | tables in a database that many servers share |
| `memory:` | forgotten when it is closed |
| `MODULE:NAME:ARGUMENT` | what `NAME` of an importable module makes of the argument |

`NAME` is a class or a function, called with the argument and the mode; see `base` for what it has
to return.

>>> import asyncio
>>> async def session() -> list[str]:
...     async with open("memory:") as store:
...         return await store.items.queries()
>>> asyncio.run(session())
[]
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from operator import attrgetter
from typing import Any, NamedTuple

from ebrank.service.store.base import Mode, Store, StoreError

SCHEMES = {
    "sqlite": ("ebrank.service.store.sqlite", "SqliteStore"),
    "postgresql": ("ebrank.addons.postgresql", "PostgresStore.open"),
    "memory": ("ebrank.service.store.memory", "MemoryStore"),
}
PLAIN = "sqlite"


@asynccontextmanager
async def open(url: str, mode: Mode = "serve") -> AsyncIterator[Store]:
    """Open a store; it is closed when the block ends, and discarded if it is new and that failed.

    Raises:
        StoreError: if the text means no store, or the store cannot be opened.
    """
    make, argument = _factory(url)
    made = make(argument, mode)
    store: Store = await made if inspect.isawaitable(made) else made
    try:
        yield store
    except BaseException:
        await store.close(discard=mode == "new")
        raise
    await store.close()


@asynccontextmanager
async def open_existing(url: str) -> AsyncIterator[Store]:
    """Open a store to change it; unlike one that is served, it is not made if there is none.

    Raises:
        StoreError: if there is no store, or it cannot be opened.
    """
    async with open(url, "browse"):
        pass
    async with open(url) as store:
        yield store


class Migrated(NamedTuple):
    """A store by its name for people, the version that it had, and the one it has."""

    name: str
    before: int
    now: int


async def migrated(url: str) -> Migrated:
    """Bring a store to the version that this ebrank reads, which no server may use meanwhile.

    Raises:
        StoreError: if there is no store, or it is newer, or too old, or in use.
    """
    make, argument = _factory(url)
    migrate = getattr(getattr(make, "__self__", make), "migrate", None)
    if migrate is None:
        raise StoreError(f"{url}: there are no versions of such a store. Just open it.")
    return Migrated(*await migrate(argument))


def without_password(url: str) -> str:
    """Return a URL to show to people.

    >>> without_password("postgresql://ann:secret@db.example/shop")
    'postgresql://ann@db.example/shop'
    >>> without_password("sqlite:a@b:c")
    'sqlite:a@b:c'
    """
    return re.sub(r"^(\w+://[^/?#:]*):[^/?#]*@", r"\1@", url)


def _factory(url: str) -> tuple[Callable[[str, Mode], Any], str]:
    """Return what makes a store, and its argument."""
    first, colon, rest = url.partition(":")
    if not colon or first.startswith((".", "/", "~")):
        first, rest = PLAIN, url
    if first in SCHEMES:
        module, name = SCHEMES[first]
        return attrgetter(name)(importlib.import_module(module)), rest
    name, colon, argument = rest.partition(":")
    if not colon:
        raise StoreError(
            f"{url}: no such kind of store. Write {', '.join(f'{name}:…' for name in SCHEMES)}, a "
            "class of your own as module:Class:argument, or a path as ./path"
        )
    try:
        return getattr(importlib.import_module(first), name), argument
    except (ImportError, AttributeError) as problem:
        raise StoreError(
            f"{url}: {problem}. Is it installed, or in a folder of PYTHONPATH?"
        ) from problem
