"""The numbers of an experiment: each is an option, and a key of a `--config` file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ebrank.errors import ParameterError
from ebrank.parameters import near
from ebrank.settings import SettingsError

if TYPE_CHECKING:
    from ebrank.evidence import Examination
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.users import UserModel

F = TypeVar("F", bound=Callable[..., Any])
N = TypeVar("N", int, float)

USERS = "NAME[:PARAM=VALUE,…]"


PROTOCOL = {
    "eta": click.option(
        "--eta",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="NUMBER",
        default=1.0,
        show_default=True,
        help="Probability that an item enters in a session of its query.",
    ),
    "sessions": click.option(
        "--sessions",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        help="Sessions per trial; by default (rows − 5·queries)/η.",
    ),
    "updates": click.option(
        "--updates",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        default=20,
        show_default=True,
        help="Model updates per trial.",
    ),
    "warmup": click.option(
        "--warmup",
        type=click.IntRange(min=0),
        metavar="NUMBER",
        default=20,
        show_default=True,
        help="Sessions per query that the production ranker serves first.",
    ),
    "initial": click.option(
        "--initial",
        default="5-10",
        show_default=True,
        metavar="FEWEST-MOST",
        help="Candidates each query starts with; the others enter later.",
    ),
    "list_length": click.option(
        "--list-length",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        default=5,
        show_default=True,
        help="Items shown in a list. Users look at the first 5, unless you set --cutoff.",
    ),
    "users": click.option(
        "--users",
        default="pbm",
        show_default=True,
        metavar=USERS,
        help="How users look and click: pbm (as in the paper), cascade, dcm, dbn, or your own "
        "model as MODULE:CLASS. setting=perfect, navigational or informational takes the "
        "probabilities from the literature.",
    ),
    "noise": click.option(
        "--noise",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Click probability of irrelevant items, 0.1 by default; short for noise=… in --users.",
    ),
    "cutoff": click.option(
        "--cutoff",
        type=click.IntRange(min=1),
        metavar="RANK",
        help="The last rank users look at, 5 by default; short for cutoff=… in --users.",
    ),
    "click_rate": click.option(
        "--click-rate",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="FACTOR",
        default=1.0,
        show_default=True,
        help="Multiply every click probability by this: 0.15 makes R range from .015 to .15, as in "
        "a shop. NDCG still uses the unscaled R.",
    ),
    "examination": click.option(
        "--examination",
        metavar="SEVERITY|P1,P2,…",
        help="How far down rankers believe users look: an exponent of 1/log2(rank + 1), or the "
        "probabilities of ranks 1, 2, …; by default, what users really do.",
    ),
    "gamma": click.option(
        "--gamma",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="NUMBER",
        default=0.995,
        show_default=True,
        help="Discount in Cum-NDCG: how much each list counts relative to the next one.",
    ),
    "measure_at": click.option(
        "--measure-at",
        default="5,1,3,10",
        show_default=True,
        metavar="RANK,…",
        help="Cutoffs of Cold-NDCG and Warm-NDCG; tables show the first one.",
    ),
}


def protocol_options(without: Collection[str] = ()) -> Callable[[F], F]:
    """Add the options of an experiment, and `--config`."""

    def add(function: F) -> F:
        for name, option in reversed(PROTOCOL.items()):
            if name not in without:
                function = option(function)
        return config_option(function)

    return add


def config_of(options: dict[str, Any]) -> SimulationConfig:
    """Remove the options that describe the experiment, and return it."""
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.users import parse

    given = {name: options.pop(name) for name in PROTOCOL if name in options}
    users = _changed(parse(given["users"]), noise=given["noise"], cutoff=given["cutoff"])
    return SimulationConfig(
        entering_probability=given.get("eta", 1.0),
        initial_candidates=_pair(given["initial"]),
        warmup_sessions=given["warmup"],
        updates=given["updates"],
        sessions=given["sessions"],
        list_length=given["list_length"],
        discount=given["gamma"],
        cutoffs=_numbers("--measure-at", given["measure_at"], int),
        users=users,
        click_rate=given["click_rate"],
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


def config_option(function: F) -> F:
    """Add `--config`: a file that gives options their values."""
    return click.option(
        "--config",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_read_config,
        help="TOML file of options, such as list-length = 10; options you type override it.",
    )(function)


def is_given(context: click.Context, name: str) -> bool:
    """Return whether the user gave an option, here or in a file."""
    source = context.get_parameter_source(name)
    given = source in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
    return given and name in context.params  # `--config` itself has no value


def _read_config(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    try:
        table = tomllib.loads(Path(value).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{value}: cannot be read: {problem}") from None
    except tomllib.TOMLDecodeError as problem:
        raise SettingsError(f"{value}: not valid TOML: {problem}") from None
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
