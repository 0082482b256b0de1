"""Verbs and groups of verbs, declared by a function: its docstring is the help, with examples.

A parameter without a default is an argument; one whose default is `opt(...)` is an option, whose
kind is that of its annotation. Options that several verbs share are a mapping of such declarations:

>>> @verb()
... def greet(name: str, times: int = opt(1, "How often.", "N"), loud: bool = opt(False, "Shout.")):
...     click.echo((f"hello {name}! " if loud else f"hello {name} ") * times)
>>> greet(["--times", "2", "Ada"], standalone_mode=False)
hello Ada hello Ada
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import (
    Any,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

F = TypeVar("F", bound=Callable[..., Any])
Options: TypeAlias = Mapping[str, Any]
"""Declarations of options, made with `opt`, by the parameter that gets the value."""
REQUIRED = object()
"""The default of an option that must be given."""
SHARED: Any = object()
"""The default of a parameter that is an option of a group."""


class _Declared(NamedTuple):
    """An option or argument, as a default declares it."""

    default: Any
    help: str
    line: str
    about: dict[str, Any]


def opt(default: Any, help: str, line: str = "", **about: Any) -> Any:  # noqa: ANN401
    """Declare an option of a verb as the default of a parameter.

    Args:
        default: its value unless given, or `REQUIRED`.
        help: what it means.
        line: what stands for its value in the help, such as `FILE`; with its name before that if
            it is not that of the parameter, such as `--map FIELD=COLUMN`.
        about: what else `click.option` takes.
    """
    return _Declared(default, help, line, about)


def arg(line: str, default: Any = REQUIRED, **about: Any) -> Any:  # noqa: ANN401
    """Declare an argument that the help calls otherwise than its parameter, or that has a default.

    `about` is what else `click.argument` takes.
    """
    return _Declared(default, "", line, about)


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[str, Callable[[F], F]]]:
    """Yield the parameters that a function declares, by name."""
    hints = get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        declared = parameter.default
        if declared is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            declared = arg("")
        if isinstance(declared, _Declared):
            yield name, _parameter(name, hints[name], declared)


def _parameter(name: str, kind: Any, declared: _Declared) -> Callable[[F], F]:  # noqa: ANN401
    """Return an option or argument, whose annotation is its kind."""
    default, help, line, about = declared
    about = {"required": default is REQUIRED} | about
    if get_origin(kind) in (UnionType, Union):
        kind = get_args(kind)[0]
    several = get_origin(kind) is tuple
    if get_origin(kind) is Literal:
        about = {"type": click.Choice(get_args(kind))} | about
    elif kind is int:
        about = {"type": int} | about
    if not any(default is none for none in (REQUIRED, None, False, ())):
        about["default"] = default
    if not help:
        return click.argument(name, metavar=line or None, nargs=-1 if several else 1, **about)
    if not line.startswith("--"):
        line = f"--{name.replace('_', '-')} {line}".rstrip()
    flag, _, metavar = line.partition(" ")
    usual = {
        "metavar": metavar or None,
        "multiple": several,
        "is_flag": not metavar and "type" not in about,
        "show_default": "default" in about,
    }
    return click.option(flag, name, help=help, **usual | about)


def described(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a verb's help and epilog: its docstring, which ends with examples."""
    text, _, examples = inspect.cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
    return {
        "help": text,
        "epilog": "\b\nExamples:\n" + examples.replace("    ebrank ", "  ebrank "),
    }


COMMON = ("token", "as_json")
"""Options that come last in the help."""


def verb(
    shared: Options | None = None, name: str | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a verb of a function, by default of its name.

    `shared` are options that it shares with others and takes as `**options`.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        declared = dict(_parameters(function))
        last = {own: declared.pop(own) for own in COMMON if own in declared}
        for option, given in (shared or {}).items():
            declared[option] = _parameter(option, str, given)
        described_here = described(function)
        for parameter in reversed([*declared.values(), *last.values()]):
            function = parameter(function)
        return click.command(name or function.__name__, cls=click.Command, **described_here)(
            function
        )

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
