"""Verbs and groups of verbs: help with examples, and errors without tracebacks."""

from __future__ import annotations

import difflib
import errno
import importlib
import inspect
import keyword
import warnings
from collections.abc import Callable, Mapping
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


def described(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a verb's help and epilog: its docstring, which ends with examples."""
    text, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
    return {
        "help": text,
        "epilog": "\b\nExamples:\n" + examples.replace("    ebrank ", "  ebrank "),
    }


def verb(name: str | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a verb of a function, by default of its name; its docstring is the help."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        return click.command(name or function.__name__, **described(function))(function)

    return decorate


def verbs(*inner: click.Command) -> Callable[[Callable[..., Any]], click.Group]:
    """Make a group of verbs of a function, which has nothing to do; its docstring is the help."""

    def decorate(function: Callable[..., Any]) -> click.Group:
        commands = {command.name or "": command for command in inner}
        return Verbs(function.__name__, commands=commands, callback=function, **described(function))

    return decorate


class Verbs(click.Group):
    """A group that lists its verbs in the order they are declared, and suggests similar ones."""

    def headings(self) -> Mapping[str, Mapping[str, str]]:
        """Return each verb's line of help, under headings."""
        lines = {name: (verb.help or "").partition("\n")[0] for name, verb in self.commands.items()}
        return {"Commands": lines}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        return [verb for lines in self.headings().values() for verb in lines]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that is called; for an unknown verb, suggest a similar one."""
        name, names = args[0], self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            close = difflib.get_close_matches(name.lower(), names, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs under their headings, in one column."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, lines in self.headings().items():
            with formatter.section(heading):
                formatter.write_dl([(verb.ljust(width), line) for verb, line in lines.items()])


class RootVerbs(Verbs):
    """All verbs, each imported when it is called; a user's mistakes end as one line.

    Args:
        groups: each verb's line of help, under headings.
        modules: where the verbs are, by name.
    """

    def __init__(
        self,
        *args: Any,  # noqa: ANN401
        groups: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.modules = modules

    def headings(self) -> Mapping[str, Mapping[str, str]]:
        """Return the lines of help as given, so that no verb is imported for them."""
        return self.groups

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and return the verb."""
        if cmd_name not in self.modules:
            return None
        attribute = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(self.modules[cmd_name]), attribute)
        assert isinstance(command, click.Command)
        return command

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
                reason = (problem.strerror or str(problem)).lower()
                where = f"{problem.filename}: " if problem.filename else ""
                raise UserError(where + reason) from problem
            except MemoryError as problem:
                raise UserError("out of memory; try less at a time") from problem


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    from ebrank.data.published import DatasetNote

    say = console.note if issubclass(category, DatasetNote) else console.warn
    say(str(message))
