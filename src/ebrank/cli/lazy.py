"""A group of commands that are imported when called, and errors without tracebacks."""

from __future__ import annotations

import difflib
import errno
import importlib
import keyword
import warnings
from collections.abc import Mapping
from typing import Any, TextIO

import click

from ebrank.cli import console
from ebrank.errors import EBRankError


class UserError(click.ClickException):
    """Bad input: one line on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:  # noqa: ANN401 (click's signature)
        """Print the message."""
        click.echo(f"error: {self.format_message()}", file=file, err=file is None)


class LazyGroup(click.Group):
    """Imports a verb's module only when the verb is called.

    Args:
        package: where the verbs' modules are.
        verbs: each verb's line of help, by name.
        groups: the same, under headings; instead of `verbs`.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        package: str,
        verbs: Mapping[str, str] | None = None,
        groups: Mapping[str, Mapping[str, str]] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        self.package = package
        self.groups = groups or {"Commands": verbs or {}}
        self.verbs = {verb: line for own in self.groups.values() for verb, line in own.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order they are declared."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and return its command."""
        if cmd_name not in self.verbs:
            return None
        module = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = importlib.import_module(f"{self.package}.{module}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is called; for an unknown verb, suggest a similar one."""
        verb = args[0]
        if verb not in self.verbs and not verb.startswith("-"):
            close = difflib.get_close_matches(verb.lower(), self.verbs, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            ctx.fail(f"No such command '{verb}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them, group by group, in one column."""
        width = max(map(len, self.verbs))
        for heading, verbs in self.groups.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.ljust(width), line) for verb, line in verbs.items()])


class RootGroup(LazyGroup):
    """The outermost group: errors that a user can cause end as one line, not as a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; print errors of the input and of the file system as one line."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("default", RuntimeWarning)
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except EBRankError as problem:
                raise UserError(str(problem)) from problem
            except OSError as problem:
                if problem.errno == errno.EPIPE:
                    raise
                raise UserError(_in_words(problem)) from problem
            except MemoryError as problem:
                raise UserError("out of memory; try less at a time") from problem


def examples(*commands: str) -> str:
    """Return the end of a command's help: example commands, one per line."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


def _in_words(problem: OSError) -> str:
    reason = (problem.strerror or str(problem)).lower()
    return f"{problem.filename}: {reason}" if problem.filename else reason


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from ebrank.data.published import DatasetNote

    if issubclass(category, DatasetNote):
        console.note(str(message))
    else:
        console.warn(str(message))
