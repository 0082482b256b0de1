"""The settings of an experiment: each is an option, and a key of a `--config` file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ebrank.cli.verbs import Options, opt
from ebrank.environment.config import SettingsError, read_toml
from ebrank.errors import ParameterError
from ebrank.lab.data.interpretation import as_text
from ebrank.lab.simulation.protocol import SETTINGS, Setting
from ebrank.parameters import near

if TYPE_CHECKING:
    from ebrank.evidence import Examination
    from ebrank.lab.simulation.config import SimulationConfig
    from ebrank.lab.simulation.users import UserModel

N = TypeVar("N", int, float)


def _option(setting: Setting) -> Any:  # noqa: ANN401 (a declaration)
    """Return the option of a setting."""
    kind: Any = str
    if setting.choices:
        kind = click.Choice(setting.choices)
    elif setting.range:
        (low, high), (min_open, max_open) = setting.bounds, setting.open_ends
        bounded = click.IntRange if setting.kind is int else click.FloatRange
        kind = bounded(low, high, min_open, max_open and high is not None)
    return opt(setting.default, setting.help, "" if setting.choices else setting.metavar, type=kind)


def protocol_options(without: Collection[str] = ()) -> Options:
    """Return `--config` and the options of an experiment."""
    settings = {name: _option(own) for name, own in SETTINGS.items() if name not in without}
    return {"config": CONFIG, **settings}


def config_of(options: dict[str, Any]) -> SimulationConfig:
    """Remove the options that describe the experiment, and return it."""
    from ebrank.lab.simulation.config import SimulationConfig
    from ebrank.lab.simulation.users import parse

    given = {name: options.pop(name, setting.default) for name, setting in SETTINGS.items()}
    users = _changed(parse(given["users"]), noise=given["noise"], cutoff=given["cutoff"])
    own = {f.name: f.metadata["setting"] for f in fields(SimulationConfig) if f.metadata}
    return SimulationConfig(
        **{field: given[name] for field, name in own.items()},
        initial_candidates=_pair(given["initial"]),
        cutoffs=_numbers("--measure-at", given["measure_at"], int),
        users=users,
        believed=_believed(given["examination"], users),
    )


def _pair(text: str) -> tuple[int, int]:
    numbers = _numbers("--initial", text.replace("-", ","), int)
    if len(numbers) != 2:
        raise ParameterError(f"--initial: {text!r} is not a range such as 5-10")
    return numbers[0], numbers[1]


def _numbers(option: str, text: str, kind: Callable[[str], N]) -> tuple[N, ...]:
    """Return the numbers of a list such as `1,0.6,0.4`."""
    try:
        return tuple(map(kind, text.split(",")))
    except ValueError:
        raise ParameterError(f"{option}: {text!r} is not a list of numbers such as 1,3,5") from None


def _changed(users: UserModel, **changes: float | None) -> UserModel:
    """Return users with the parameters that separate options change."""
    given = {name: value for name, value in changes.items() if value is not None}
    for name in given:
        if name not in {field.name for field in fields(users)}:  # type: ignore[arg-type]
            raise ParameterError(f"users {users} have no parameter {name}; leave out --{name}")
    return replace(users, **given) if given else users  # type: ignore[type-var]


def _believed(text: str | None, users: UserModel) -> Examination | None:
    from ebrank.evidence import Examination

    if text is None:
        return None
    numbers = _numbers("--examination", text, float)
    if len(numbers) == 1:
        return Examination(severity=numbers[0], cutoff=users.examination.cutoff)
    return Examination(curve=numbers)


# --- a file of options ---------------------------------------------------------------------------


def given_options(without: Collection[str] = ()) -> Iterator[tuple[click.Parameter, Any]]:
    """Yield the options that the user gave, here or in a file, and their values."""
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        given = source in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
        if given and parameter.name in context.params and parameter.name not in without:
            yield parameter, context.params[parameter.name]


def as_typed(without: Collection[str], **instead: str) -> str:
    """Return the options that the user gave, as words to type; some with other values."""
    words = []
    for parameter, value in given_options(without):
        value = instead.get(parameter.name or "", value)
        several = parameter.multiple if isinstance(parameter, click.Option) else False
        for each in value if several else (value,):
            words += [parameter.opts[0], as_text(each)]
    return shlex.join(words)


def _read_config(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        table = read_toml(Path(value))
    except FileNotFoundError as problem:
        raise SettingsError(f"{value}: cannot be read: {problem}") from None
    names = {
        option.opts[0].removeprefix("--"): option.name or ""
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name != param.name
    }
    values = {}
    for key, given in table.items():
        if key not in names:
            raise SettingsError(f"{value}: {key} is not an option{near(key, list(names))}")
        values[names[key]] = _typed(given)
    ctx.default_map = {**(ctx.default_map or {}), **values}


def _typed(value: object) -> object:
    """Return a value as a user would type it; a list gives an option several times.

    >>> _typed(0.5), _typed(["bm25", "ebrank"]), _typed(True)
    ('0.5', ['bm25', 'ebrank'], True)
    """
    if isinstance(value, list):
        return [_typed(each) for each in value]
    return value if isinstance(value, bool) else str(value)


CONFIG: Any = opt(
    None,
    "TOML file of options, such as list-length = 10; options you type override it.",
    "FILE",
    type=click.Path(dir_okay=False),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
)
