"""The engines that run the SQL: DuckDB in this process, or Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from ebrank.addons.logs.files import LogSource
from ebrank.errors import EBRankError

EngineName: TypeAlias = Literal["duckdb", "spark"]
ROWS_AT_ONCE = 65_536


class EngineError(EBRankError):
    """A statement failed; the text is the engine's first line."""


class SqlEngine(Protocol):
    """Runs SQL over files, in bounded memory, with a folder for what does not fit."""

    def offer(self, view: str, source: LogSource) -> None:
        """Make a view of files, with a column for each field, and `file`, their path.

        A missing field is NULL. Each of `items` is a row, with `item` and its `rank`; if there are
        none, there is a row without an item.
        """

    def view(self, name: str, text: str) -> None:
        """Give a query a name."""

    def table(self, name: str, text: str) -> None:
        """Compute a query once, and keep its rows under a name."""

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query with few rows."""

    def batches(self, text: str) -> Iterator[Any]:
        """Yield the rows of a query as Arrow tables, in order."""

    def close(self) -> None:
        """Release everything."""


def start(
    name: EngineName, *, memory: int, threads: int | None, spill: Path, master: str | None = None
) -> closing[SqlEngine]:
    """Return an engine that takes about this many bytes of memory, and spills to a folder."""
    if name == "duckdb":
        from ebrank.addons.logs.engines.duckdb import DuckDB

        return closing(DuckDB(memory=memory, threads=threads, spill=spill))
    from ebrank.addons.logs.engines.spark import Spark

    return closing(Spark(memory=memory, threads=threads, spill=spill, master=master))


def in_words(problem: Exception) -> str:
    """Return the first line of an engine's error that says something."""
    lines = (line.strip() for line in str(problem).splitlines())
    return next((line for line in lines if line), type(problem).__name__)
