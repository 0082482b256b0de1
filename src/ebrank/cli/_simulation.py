"""What the lab's verbs share: options, the simulation they describe, interrupts, numbers."""

from __future__ import annotations

import json
import math
import re
import shlex
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import click
from click.core import ParameterSource

from ebrank.cli import console
from ebrank.cli._protocol import config_of, is_given, protocol_options
from ebrank.cli.options import ALL_FOLDS, dataset_options
from ebrank.data.interpretation import as_text
from ebrank.errors import DataError

if TYPE_CHECKING:
    from ebrank.data.dataset import Dataset
    from ebrank.experiments.framework.ranker_by_fold import AnyRanker
    from ebrank.simulation.cluster import Cluster
    from ebrank.simulation.config import SimulationConfig
    from ebrank.simulation.parallel import TrialPool
    from ebrank.simulation.result import Result
    from ebrank.simulation.worker import Locator
    from ebrank.typing import Texts

F = TypeVar("F", bound=Callable[..., Any])

LARGEST_SEED = 2**63 - 2
COMPILING = "note: compiling for this machine; this takes a few seconds, only the first time"
RANKER = "NAME[:PARAM=VALUE,…]"
OF_ONE_RUN = {"ranker", "params", "grids", "trials", "jobs", "cluster", "out", "as_json"}
"""Options that say what to do with a simulation, rather than what it is."""


def _seed(ctx: click.Context, param: click.Parameter, value: int) -> int:
    if value > LARGEST_SEED:
        raise click.BadParameter(f"{value} is too large; the largest seed is {LARGEST_SEED}")
    return value


def _cluster(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from ebrank.simulation.cluster import Address

    Address.read(value)  # fail now rather than later
    return value


def refuse_jobs_on_clusters() -> None:
    """Raise if both --jobs and --cluster are given."""
    context = click.get_current_context()
    typed = context.get_parameter_source("jobs") is ParameterSource.COMMANDLINE
    if typed and context.params.get("cluster") is not None:
        raise click.UsageError("--jobs applies to this machine only; leave it out with --cluster")


OPTIONS = {
    "dataset": click.option(
        "--dataset",
        required=True,
        metavar="NAME|FOLDER",
        help="A preset, a published dataset, or a folder with train.txt, vali.txt and test.txt.",
    ),
    "trials": click.option(
        "--trials",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        default=5,
        show_default=True,
        help="How often to repeat the simulation, each time with other users.",
    ),
    "seed": click.option(
        "--seed",
        type=click.IntRange(min=0),
        callback=_seed,
        default=0,
        metavar="NUMBER",
        show_default=True,
        help="Seed of all random draws.",
    ),
    "jobs": click.option(
        "--jobs",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        help="Trials to run in parallel, by default one per core; this does not affect results.",
    ),
    "cluster": click.option(
        "--cluster",
        callback=_cluster,
        metavar="ADDRESS",
        help="Run trials on a Dask cluster instead: dask://HOST:PORT, a scheduler file, or local:N "
        "for N processes here; this does not affect results.",
    ),
    "out": click.option(
        "--out",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Folder for the results; trials it already holds are not run again.",
    ),
    "scale": click.option(
        "--scale",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SHARE",
        help="Share of a preset's queries to generate.",
    ),
    "interactions": click.option(
        "--interactions",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Share of a preset's linear signal to move into products of features, which trees "
        "can learn and linear models cannot; none by default.",
    ),
    "about data": dataset_options,
}


def simulation_options(function: F) -> F:
    """Add the dataset, what to simulate on it, and how to run it."""
    for name, option in reversed(OPTIONS.items()):
        function = option(function)
        if name == "jobs":
            function = protocol_options()(function)
    return function


@dataclass(frozen=True)
class SimulationPlan:
    """What the options describe."""

    dataset: Dataset
    config: SimulationConfig
    trials: int
    seed: int
    jobs: int
    cluster: str | None
    locator: Locator
    out: str | None
    fold: int | None = None

    def __str__(self) -> str:
        """Return a line that describes the simulation."""
        data = self.dataset
        sessions = self.config.session_count(data)
        trials = f"{self.trials} trial{'s' if self.trials > 1 else ''}"
        fold = "" if self.fold is None else f", fold {self.fold}"
        return (
            f"{data.name}{fold}: {data.n_queries:,} queries, {data.n_rows:,} rows; "
            f"{trials} of {sessions:,} sessions, seed {self.seed}{self._conditions()}"
        )

    def _conditions(self) -> str:
        """Return what is unusual about users and lists."""
        users, length = str(self.config.users), self.config.list_length
        rate = self.config.click_rate
        unusual = {
            f"users {users}": users != "pbm",
            f"click rates × {rate:g}": rate != 1,
            f"lists of {length}": length != 5,
        }
        return "".join(f", {what}" for what, said in unusual.items() if said)


def given_options() -> str:
    """Return the options that describe the simulation, as the user typed them."""
    context = click.get_current_context()
    words = []
    for option in context.command.params:
        name = option.name or ""
        if is_given(context, name) and name not in OF_ONE_RUN:
            words += [option.opts[0], as_text(context.params[name])]
    return shlex.join(words)


def plan_simulation(
    dataset: str,
    *,
    trials: int,
    seed: int,
    jobs: int | None,
    cluster: str | None,
    out: str | None,
    **others: Any,  # noqa: ANN401 (the protocol's numbers, and what `ebrank.load` takes)
) -> SimulationPlan:
    """Load the dataset and return the simulation that the options describe."""
    refuse_jobs_on_clusters()
    fold = others.get("fold")
    say_what_begins(dataset if fold is None else f"{dataset}, fold {fold}", trials, seed)
    import ebrank
    from ebrank.simulation.worker import Locator
    from ebrank.threads import available_threads

    config = config_of(others)
    with console.progress("reading") as progress:
        loaded = ebrank.load(dataset, progress=progress, **others)
    config.session_count(loaded)  # raises if it is too short
    locator = Locator.of(dataset, **others)
    at_a_time = jobs or available_threads()
    return SimulationPlan(loaded, config, trials, seed, at_a_time, cluster, locator, out, fold)


def plan_folds(**options: Any) -> Iterator[SimulationPlan]:  # noqa: ANN401
    """Yield the simulation that the options describe, or one per fold, each read when needed.

    Each fold has its own folder in --out.
    """
    for fold in folds_to_run(options):
        out = options["out"]
        if options["fold"] == ALL_FOLDS and out is not None:
            out = str(Path(out) / f"Fold{fold}")
        yield plan_simulation(**options | {"fold": fold, "out": out})


def plan_pooled_folds(**options: Any) -> Iterator[SimulationPlan]:  # noqa: ANN401
    """Yield the same once all folds have been read, and share no test query.

    Only the first stays in memory; each other one is read again when it is needed.
    """
    from ebrank.experiments.framework.folds import check_disjoint

    plans: list[SimulationPlan] = []
    test_ids: dict[str, Texts] = {}
    for plan in plan_folds(**options):
        test_ids[f"fold {plan.fold}"] = plan.dataset.query_ids[plan.dataset.queries_in("test")]
        plans.append(plan if not plans else replace(plan, dataset=plans[0].dataset))
    check_disjoint(test_ids)
    for plan in plans:
        yield plan if plan is plans[0] else replace(plan, dataset=read_again(plan.locator))


def read_again(locator: Locator) -> Dataset:
    """Return a dataset that was read before and gave all its warnings then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return locator.load()


def folds_to_run(options: Mapping[str, Any]) -> Sequence[int | None]:
    """Return the numbers of the folds that the options choose."""
    if options["fold"] != ALL_FOLDS:
        return [options["fold"]]
    from ebrank.data.locate import folds_of

    return folds_of(options["dataset"], options["data_dir"])


def read_rankers(texts: Sequence[str], options: Mapping[str, Any]) -> list[AnyRanker]:
    """Return the rankers that texts name, each once.

    With --fold all, a parameter may have a value for each fold: `ebrank:epsilon=20/5`.
    """
    from ebrank.experiments.framework import ranker_by_fold
    from ebrank.rankers import registry

    if options["fold"] != ALL_FOLDS:
        return list(dict.fromkeys(map(registry.parse, texts)))
    folds = len(folds_to_run(options))
    return list(dict.fromkeys(ranker_by_fold.parse(text, folds) for text in texts))


def say_what_begins(dataset: str, trials: int, seed: int) -> None:
    """Tell people at once what is under way: importing and reading take seconds."""
    context = click.get_current_context()
    if not context.params.get("as_json"):
        count = f"{trials} trial{'s' if trials > 1 else ''}"
        click.echo(f"ebrank {context.info_name}: {dataset}, {count}, seed {seed}", err=True)


@contextmanager
def pool_of(plan: SimulationPlan) -> Iterator[TrialPool | None]:
    """Yield where the trials of a plan run: the workers of its cluster; None for this process."""
    with connected(plan.cluster) as cluster:
        yield None if cluster is None else cluster.workers(plan.dataset, plan.locator)


@contextmanager
def connected(address: str | None) -> Iterator[Cluster | None]:
    """Yield the cluster at an address, if there is one."""
    if address is None:
        yield None
        return
    from ebrank.simulation import cluster

    with cluster.connected(address, console.note) as found:
        yield found


def read_own(path: Path, kind: str) -> dict[str, Any]:
    """Return what this command wrote there before, {} if nothing; raise if the file is foreign."""
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        ours = document["kind"] == kind
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise DataError(
            "another program wrote this file", path=path, remedy="Choose another --out."
        )
    return document


class _Interrupt(KeyboardInterrupt):
    """Ctrl-C, remembered while it is being handled."""

    def __init__(self, under_way: WeakSet[_Interrupt]) -> None:
        super().__init__()
        under_way.add(self)


@contextmanager
def one_interrupt_at_a_time() -> Iterator[None]:
    """Ignore Ctrl-C while an earlier one is being handled, so that its report is always printed.

    A Ctrl-C that got lost, as happens in callbacks of the compiler, is not being handled; then the
    next one counts.
    """
    under_way: WeakSet[_Interrupt] = WeakSet()

    def interrupt(*_: object) -> None:
        if not under_way:
            raise _Interrupt(under_way)

    before = signal.getsignal(signal.SIGINT)
    in_charge = threading.current_thread() is threading.main_thread()
    if not in_charge or before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def note_of_compilation() -> AbstractContextManager[None]:
    """Return a context that tells on stderr when kernels are not cached and must be compiled."""
    from ebrank.simulation.compilation import watched

    return watched(lambda: click.echo(COMPILING, err=True))


def say_stopped(finished: int, planned: int, out: str | None) -> None:
    """Say how many trials an interrupted run finished, in all folds."""
    message = f"stopped: {finished} of {planned} trials finished"
    if out is not None:
        message += f", kept in {out}; run the same command to continue"
    click.echo(message, err=True)


def mean_and_spread(values: Any, digits: int) -> str:  # noqa: ANN401 (an array, imported late)
    """Return `.718 ± .004`: mean and standard deviation over trials, as papers print them."""
    from ebrank.experiments.framework.numbers import NOTHING
    from ebrank.simulation.summary import spread

    mean, deviation = float(values.mean()), spread(values)
    if math.isnan(mean):
        return NOTHING
    numbers = [mean] if deviation is None else [mean, deviation]
    return " ± ".join(f"{number:.{digits}f}".removeprefix("0") for number in numbers)


def warn_of_unserved(results: Sequence[Result]) -> None:
    """Warn of trials too short to serve a test query; they are the same for all rankers."""
    from ebrank.experiments.framework.numbers import counted

    most = max(results, key=lambda result: result.unserved)
    if most.unserved:
        trials = counted(len(most.trials), "trial")
        console.warn(
            f"no test query was served in {most.unserved} of {trials}, so there is no Run-NDCG; "
            "set more --sessions"
        )


def right_aligned(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the rows with each column of numbers padded on the left to one width."""
    columns = []
    for column in zip(*rows, strict=True):
        width = max(map(len, column))
        numbers = all(cell[:1].isdigit() or cell[:1] == "." for cell in column)
        columns.append([cell.rjust(width) if numbers else cell for cell in column])
    return list(zip(*columns, strict=True))


def wrapped(text: str, width: int) -> str:
    """Return a ranker's text in lines of at most this width, wrapped between parameters.

    >>> print(wrapped("ebrank:epsilon=5.0,estimator=exposure", 25))
    ebrank:epsilon=5.0,
      estimator=exposure
    """
    lines = [""]
    for part in re.findall(r"[^:,]*[:,]?", text):
        if len(lines[-1] + part) > width and lines[-1].strip():
            lines.append("  ")
        lines[-1] += part
    return "\n".join(lines)
