"""Options of the lab's verbs: the dataset, the simulation, and a `--config` file of options."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ebrank.cli.verbs import REQUIRED, Options, opt
from ebrank.environment.config import SettingsError, read_toml
from ebrank.errors import ParameterError
from ebrank.lab.data.interpretation import AUTO, MAX_FEATURE, NONE, as_text
from ebrank.lab.simulation.protocol import SETTINGS
from ebrank.parameters import near

if TYPE_CHECKING:
    from ebrank.evidence import Examination
    from ebrank.lab.simulation.config import SimulationConfig
    from ebrank.lab.simulation.users import UserModel

N = TypeVar("N", int, float)

ALL_FOLDS = "all"
LARGEST_SEED = 2**63 - 2
RANKER = "NAME[:PARAM=VALUE,…]"
DATASET = "A preset, a published dataset, or a folder with train.txt, vali.txt and test.txt"
METAVARS = {
    "initial": "FEWEST-MOST",
    "users": RANKER,
    "examination": "SEVERITY|P1,P2,…",
    "measure_at": "RANK,…",
}
"""What stands for the values of settings that are no numbers."""


# --- datasets ------------------------------------------------------------------------------------


DATA_DIR: Any = opt(
    None,
    "Folder with the datasets, as NAME/Fold1/train.txt; default: EBRANK_DATA.",
    "FOLDER",
    type=click.Path(file_okay=False),
)


def _fold(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    return value if value in (None, ALL_FOLDS) else _whole(ctx, param, value)


def _whole(ctx: click.Context, param: click.Parameter, value: str) -> int | str | None:
    """Return a whole number, None for `none`, or `auto`; `ebrank.load` checks its range."""
    if value in (AUTO, NONE):
        return None if value == NONE else value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not {param.metavar}: a whole number") from None


def _drop_features(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...] | str:
    """Return the numbers in order, each once."""
    if value in (AUTO, NONE):
        return () if value == NONE else value
    try:
        return tuple(sorted({number for part in value.split(",") for number in _range_of(part)}))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a list of feature numbers such as 1,7,134-136 nor none"
        ) from None


def _range_of(part: str) -> range:
    """Parse a number or a range, such as `7` or `134-136`.

    >>> list(_range_of("134-136"))
    [134, 135, 136]
    """
    first, dash, last = part.partition("-")
    numbers = range(int(first), int(last if dash else first) + 1)
    if not numbers or numbers[0] < 1 or numbers[-1] > MAX_FEATURE:
        raise ValueError(part)
    return numbers


dataset_options: Options = {
    "data_dir": DATA_DIR,
    "fold": opt(
        None,
        "Which fold of a dataset that has several, 1 by default. With all, simulate, "
        "compare and reproduce pool the test queries of all folds.",
        "N|all",
        callback=_fold,
    ),
    "baseline_feature": opt(
        AUTO,
        "Feature with the score of the production ranker (BM25), which ranks before "
        "there is a model; with none, the order is random. Known for datasets with 46 (LETOR "
        "4.0) and 136 (MSLR-WEB) features, otherwise none.",
        "N|none",
        callback=_whole,
        show_default=False,
    ),
    "drop_features": opt(
        AUTO,
        "Features to remove because they are derived from clicks, such as 134-136. "
        "Known for the same datasets, otherwise none.",
        "LIST|none",
        callback=_drop_features,
        show_default=False,
    ),
    "max_label": opt(
        AUTO,
        "Largest possible label. Known for the same datasets, otherwise the largest in the files.",
        "N",
        callback=_whole,
        show_default=False,
    ),
}
"""What verbs that read a dataset ask: where it is, and what its columns mean."""


# --- simulations ---------------------------------------------------------------------------------


def _setting(name: str) -> Any:  # noqa: ANN401 (a declaration)
    """Return the option of a setting."""
    about = SETTINGS[name]
    kind: Any = str
    if about.choices:
        kind = click.Choice(about.choices)
    elif about.kind is not str:
        bounded: Any = click.IntRange if about.kind is int else click.FloatRange
        kind = bounded(about.at_least, about.at_most)
    metavar = "" if about.choices else METAVARS.get(name, "NUMBER")
    return opt(about.default, about.help, metavar, type=kind)


def _cluster(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from ebrank.addons.cluster.cluster import ClusterAddress

    ClusterAddress.read(value)  # fail now rather than later
    return value


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
        assumed=_assumed(given["examination"], users),
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


def _assumed(text: str | None, users: UserModel) -> Examination | None:
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


def simulation_options(
    *,
    without: Collection[str] = (),
    dataset: Any = None,  # noqa: ANN401 (a declaration)
    out: str = "Folder for the results; trials it already holds are not run again.",
) -> Options:
    """Return the options of the lab's verbs: the dataset, what to simulate on it, and how.

    Args:
        without: settings of the protocol that are no options of the verb.
        dataset: `--dataset`, if it is special.
        out: the help of `--out`.
    """
    at_least_one = click.IntRange(min=1)
    return {
        "dataset": dataset or opt(REQUIRED, f"{DATASET}.", "NAME|FOLDER"),
        "trials": opt(
            5,
            "How often to repeat the simulation, each time with other users.",
            "NUMBER",
            type=at_least_one,
        ),
        "seed": opt(0, "Seed of all random draws.", "NUMBER", type=click.IntRange(0, LARGEST_SEED)),
        "config": CONFIG,
        **{name: _setting(name) for name in SETTINGS if name not in without},
        "jobs": opt(
            None,
            "Trials to run in parallel, by default one per core; this does not affect results.",
            "NUMBER",
            type=at_least_one,
        ),
        "cluster": opt(
            None,
            "Run trials on a Dask cluster instead: dask://HOST:PORT, a scheduler file, or "
            "local:N for N processes here; this does not affect results.",
            "ADDRESS",
            callback=_cluster,
        ),
        "out": opt(None, out, "DIR", type=click.Path(file_okay=False)),
        "scale": opt(
            None,
            "Share of a preset's queries to generate.",
            "SHARE",
            type=click.FloatRange(min=0, min_open=True),
        ),
        "interactions": opt(
            None,
            "Share of a preset's linear signal to move into products of features, which trees "
            "can learn and linear models cannot; none by default.",
            "SHARE",
            type=click.FloatRange(0, 1),
        ),
        **dataset_options,
    }
