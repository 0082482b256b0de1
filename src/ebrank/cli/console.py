"""What people and scripts see: tables, progress and JSON.

Results go to stdout, everything else to stderr; color and progress bars appear on terminals only.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ebrank.paper.framework.display import Table

# A log should name the stages that take minutes, not those that take a moment.
_LOG_SECONDS = 5.0


def print_json(value: object) -> None:
    """Print one JSON document: plain values, or messages of the service."""

    def plain(message: object) -> object:
        import msgspec

        return msgspec.to_builtins(message)

    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=plain)
    click.echo(text)


def answer(as_json: bool, document: object, *lines: str) -> None:
    """Print a result: one JSON document for scripts, or lines for people."""
    if as_json:
        print_json(document)
    else:
        for line in lines:
            click.echo(line)


def counted(what: str, rows: Mapping[str, int]) -> str:
    """Return a line of counts.

    >>> counted("copy", {"items": 1234, "events": 5})
    'copy: 1,234 items, 5 events'
    """
    return f"{what}: " + ", ".join(f"{count:,} {name}" for name, count in rows.items())


def print_table(table: Table) -> None:
    """Print a table, in color on a terminal."""
    from ebrank.paper.report.tables import terminal

    width = shutil.get_terminal_size().columns
    click.echo(terminal(table, width=width, color=sys.stdout.isatty()) + "\n")


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table of texts and whole numbers, which get thousands separators."""
    from ebrank.paper.framework.display import Cell, Column, Row, Table

    def cell(value: object) -> Cell | str:
        return Cell(value, digits=0) if isinstance(value, int) else str(value)

    shown = tuple(Row(tuple(map(cell, row))) for row in rows)
    print_table(Table("", "", "", tuple(map(Column, columns)), shown))


def wrapped(text: str, indent: str = "") -> str:
    """Return a text wrapped between words to the width of the terminal."""
    return textwrap.fill(
        text,
        shutil.get_terminal_size().columns,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def note(message: str) -> None:
    """Print a note to stderr."""
    _say(f"note: {message}")


def warn(message: str) -> None:
    """Print a warning to stderr."""
    _say(f"warning: {message}")


@contextmanager
def progress(label: str) -> Iterator[Callable[..., None]]:
    """Yield a callback of (done, total) that shows progress on stderr.

    It also takes a new label, for a new stage. A terminal gets a bar. Elsewhere, for example in a
    log, each of several stages gets a line when it begins, if the whole takes a while.
    """
    if not sys.stderr.isatty():
        yield _line_per_stage()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Remaining())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(label, total=None)

    def update(done: int, total: int, label: str | None = None) -> None:
        bar.update(task, completed=done, total=total, description=label)

    with bar:
        yield update


def _line_per_stage() -> Callable[..., None]:
    began, stage = time.monotonic(), ""

    def update(done: int, total: int, label: str | None = None) -> None:
        nonlocal stage
        if label not in (None, stage) and time.monotonic() - began > _LOG_SECONDS:
            stage = label or ""
            click.echo(f"{stage} ({done / max(total, 1):.0%} done)", err=True)

    return update


def _say(text: str) -> None:
    """Print a line to stderr, wrapped between words on a terminal."""
    click.echo(wrapped(text) if sys.stderr.isatty() else text, err=True)
