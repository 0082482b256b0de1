"""Verbs and groups of verbs: the docstring is the help, and ends with examples."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click


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
        named = name or function.__name__
        return click.command(named, cls=click.Command, **described(function))(function)

    return decorate


def verbs(
    *inner: click.Command,
    cls: type[Verbs] | None = None,
    **settings: Any,  # noqa: ANN401 (of click's context)
) -> Callable[[Callable[..., Any]], Verbs]:
    """Make a group of verbs of a function, which has nothing to do; its docstring is the help."""

    def decorate(function: Callable[..., Any]) -> Verbs:
        commands = {command.name or "": command for command in inner}
        about = described(function) | {"callback": function, "context_settings": settings}
        return (cls or Verbs)(function.__name__, commands, **about)

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
