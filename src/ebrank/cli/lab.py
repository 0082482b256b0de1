"""What the lab's verbs share: options, the simulation they describe, stops."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ebrank.cli import console
from ebrank.cli.lab_options import ALL_FOLDS, config_of
from ebrank.paper.framework.numbers import counted

if TYPE_CHECKING:
    from ebrank.addons.cluster.cluster import Cluster
    from ebrank.addons.cluster.worker import Locator
    from ebrank.lab.data.dataset import Dataset
    from ebrank.lab.simulation.config import SimulationConfig
    from ebrank.lab.simulation.result import Result
    from ebrank.paper.framework.folds import Fold
    from ebrank.typing import Texts

COMPILING = "note: compiling for this machine; this takes a few seconds, only the first time"


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
        from ebrank.lab.simulation.config import SimulationConfig
        from ebrank.paper.framework.exhibit import world_of

        data, world = self.dataset, world_of(self.config, SimulationConfig())
        sessions = self.config.session_count(data)
        trials = counted(self.trials, "trial")
        fold = "" if self.fold is None else f", fold {self.fold}"
        return (
            f"{data.name}{fold}: {data.n_queries:,} queries, {data.n_rows:,} rows; "
            f"{trials} of {sessions:,} sessions, seed {self.seed}{world and f', {world}'}"
        )


@dataclass(frozen=True)
class Loaded:
    """A dataset that fits a simulation, or all its folds: all were read, the first is in memory.

    Attributes:
        first: the dataset, or its first fold.
        locators: how others find it, or each of its folds.
        numbers: of the folds, None if it is not known.
        folds: what there is to say of each fold if there are several, else ().
    """

    first: Dataset
    locators: tuple[Locator, ...]
    numbers: tuple[int | None, ...]
    folds: tuple[Fold, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        from ebrank.paper.framework.folds import pooled_name

        return pooled_name(self.first.name, len(self.folds)) if self.folds else self.first.name

    @property
    def folder_name(self) -> str:
        """The name of its folder; all folds share a single fold's folder, and its trials."""
        from ebrank.paper.framework.folds import set_name

        return set_name(self.first.name) if self.folds else self.name

    def opened(self, place: int) -> Dataset:
        """Return the fold at a place."""
        return self.first if place == 0 else read_again(self.locators[place])


def load(name: str, config: SimulationConfig, options: Mapping[str, Any]) -> Loaded:
    """Read a dataset, or the folds that the options choose, which must not share a test query."""
    import ebrank
    from ebrank.addons.cluster.worker import Locator
    from ebrank.paper.framework.folds import Fold, check_disjoint, set_name

    first: Dataset | None = None
    folds: list[Fold] = []
    locators: list[Locator] = []
    test_ids: dict[str, Texts] = {}
    numbers = folds_to_run(name, options)
    for number in numbers:
        own = {**options, "fold": number}
        with console.progress(f"reading {name}") as progress:
            data = ebrank.load(name, progress=progress, **own)
        folds.append(Fold.of(data, config, f"{set_name(data.name)}, fold {number}"))
        locators.append(Locator.of(name, **own))
        test_ids[f"fold {number}"] = data.query_ids[data.queries_in("test")]
        first = first or data
    check_disjoint(test_ids)
    assert first is not None
    return Loaded(first, tuple(locators), tuple(numbers), tuple(folds) if len(folds) > 1 else ())


def read_again(locator: Locator) -> Dataset:
    """Return a dataset that was read before and gave all its warnings then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return locator.load()


def folds_to_run(name: str, options: Mapping[str, Any]) -> Sequence[int | None]:
    """Return the numbers of a dataset's folds that the options choose."""
    if options["fold"] != ALL_FOLDS:
        return [options["fold"]]
    from ebrank.lab.data.loading import folds_of

    return folds_of(name, options["data_dir"])


def plan_folds(**options: Any) -> Iterator[SimulationPlan]:  # noqa: ANN401
    """Yield the simulation that the options describe, or one per fold, with its folder in --out."""
    from ebrank.kernels.threads import available_threads

    own = ("dataset", "trials", "seed", "jobs", "cluster", "out")  # not of `ebrank.load`
    name, trials, seed, jobs, cluster, out = map(options.pop, own)
    fold = options["fold"]
    begin({None: name, ALL_FOLDS: f"{name}, all folds"}.get(fold, f"{name}, fold {fold}"))
    config = config_of(options)
    loaded = load(name, config, options)
    for place, locator in enumerate(loaded.locators):
        number = loaded.numbers[place]
        folder = None if out is None else str(Path(out, *[f"Fold{number}"] * (fold == ALL_FOLDS)))
        data, jobs = loaded.opened(place), jobs or available_threads()
        yield SimulationPlan(data, config, trials, seed, jobs, cluster, locator, folder, number)


def begin(dataset: str) -> None:
    """Tell people at once what is under way: importing and reading take seconds.

    Raises if both --jobs and --cluster are given.
    """
    context = click.get_current_context()
    options = context.params
    typed = context.get_parameter_source("jobs") is ParameterSource.COMMANDLINE
    if typed and options["cluster"] is not None:
        raise click.UsageError("--jobs applies to this machine only; leave it out with --cluster")
    if not options["as_json"]:
        begins = f"{dataset}, {counted(options['trials'], 'trial')}, seed {options['seed']}"
        click.echo(f"ebrank {context.info_name}: {begins}", err=True)


def connected(address: str | None) -> AbstractContextManager[Cluster | None]:
    """Return a block with the cluster at an address, if there is one."""
    if address is None:
        return nullcontext()
    from ebrank.addons.cluster import cluster

    return cluster.connected(address, console.note)


@contextmanager
def running(
    plan: SimulationPlan, label: str, file: str, kind: str, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield how the trials of a plan are run, for functions that run many.

    Trials are kept in --out; raises if a file that will be written there is foreign.
    """
    from ebrank.lab.simulation.storage import StoredTrials, read_own

    store = None
    if plan.out is not None:
        store = StoredTrials(plan.out, plan.dataset, plan.config, seed)
        read_own(Path(plan.out) / file, kind)
    with connected(plan.cluster) as cluster, console.progress(label) as progress:
        pool = None if cluster is None else cluster.workers(plan.dataset, plan.locator)
        how = {"trials": plan.trials, "jobs": plan.jobs, "pool": pool, "store": store}
        yield how | {"progress": progress}


def note_of_compilation() -> AbstractContextManager[None]:
    """Return a context that tells on stderr when kernels are not cached and must be compiled."""
    from ebrank.kernels.compiled import announced

    return announced(lambda: click.echo(COMPILING, err=True))


def stopped(finished: int, planned: int, out: str | None) -> click.exceptions.Exit:
    """Say how many trials an interrupted run finished, in all folds; return what ends it."""
    kept = "" if out is None else f", kept in {out}; run the same command to continue"
    click.echo(f"stopped: {finished} of {planned} trials finished{kept}", err=True)
    return click.exceptions.Exit(130)


def warn_of_unserved(results: Sequence[Result]) -> None:
    """Warn of trials too short to serve a test query; they are the same for all rankers."""
    most = max(results, key=lambda result: result.unserved)
    if most.unserved:
        trials = counted(len(most.trials), "trial")
        console.warn(
            f"no test query was served in {most.unserved} of {trials}, so there is no Run-NDCG; "
            "set more --sessions"
        )
