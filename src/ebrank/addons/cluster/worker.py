"""What a worker of a cluster does: open the dataset, check it and the code, run one trial.

A trial is a pure function of its `Order`, which is small: a dataset travels as its name and a hash
of its content, a ranker as its text. The worker loads both itself, from its own files and caches,
and refuses if they are not what the order means.
"""

from __future__ import annotations

import pickle
import platform
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ebrank.environment.paths import expanded
from ebrank.errors import ClusterError, EBRankError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.data.loading import load, preset_named
from ebrank.lab.data.published import find
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import compile_for, run_trial
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.stamps import fingerprint, lasting_stamp, versions

PROCESSOR = "processor"
CALLED = {
    "ebrank": "ebrank",
    "python": "Python",
    "numpy": "NumPy",
    "scipy": "SciPy",
    "numba": "Numba",
    "lightgbm": "LightGBM",
    "source": "source of ebrank",
}
"""Versions that must agree on all machines, and their names in messages."""
SAME_VERSIONS = "Install the same versions and files on all machines and restart the workers."


@dataclass(frozen=True)
class Locator:
    """How any machine finds a dataset.

    Attributes:
        source: a preset, a published dataset, or a folder by its whole path.
        options: of `ebrank.load`, by name.
    """

    source: str
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, source: str, **options: Any) -> Locator:  # noqa: ANN401 (what `ebrank.load` takes)
        """Return the locator of what `ebrank.load` loads here with these arguments.

        >>> Locator.of("mq2007-like", scale=0.1, fold=None)
        Locator(source='mq2007-like', options=(('scale', 0.1),))
        """
        if preset_named(source) is None and find(source) is None:
            source = str(expanded(source).absolute())
        given = {name: value for name, value in options.items() if value is not None}
        if "baseline_feature" in options:
            given["baseline_feature"] = options["baseline_feature"]  # None is a choice too
        if "data_dir" in given:
            given["data_dir"] = str(expanded(given["data_dir"]).absolute())
        return cls(source, tuple(given.items()))

    def load(self) -> Dataset:
        """Return the dataset, from this machine's files or cache."""
        return load(self.source, **dict(self.options))


@dataclass(frozen=True)
class Order:
    """A trial to run.

    Attributes:
        locator: where the dataset is.
        fingerprint: hash of the dataset's content.
        ranker: its text.
        config: the pickled config, whose users may come from a module that only workers have.
        seed, trial: choose the random draws.
        code: stamp of the code of ranker and users, of ebrank's, and of the libraries' versions.
    """

    locator: Locator
    fingerprint: str
    ranker: str
    config: bytes
    seed: int
    trial: int
    code: str


def dask_setup(worker: object) -> None:
    """Leave Ctrl-C to the client; Dask calls this where this module is preloaded.

    In a terminal, workers that a client has started get the signal too.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def facts() -> dict[str, str]:
    """Return what the outcome of a trial depends on in this process, and the type of processor."""
    from llvmlite.binding import get_host_cpu_name

    processor = f"{platform.machine()} {get_host_cpu_name()}"
    return versions() | {PROCESSOR: processor}


def differences(here: dict[str, str], there: dict[str, str]) -> Iterator[str]:
    """Yield how the code on another machine differs from the code here.

    >>> list(differences({"numpy": "2.4.6"}, {"numpy": "2.3.0"}))
    ['NumPy 2.3.0 (here 2.4.6)']
    """
    for name, called in CALLED.items():
        if here.get(name) != there.get(name):
            yield f"{called} {there.get(name)} (here {here.get(name)})"


def run_order(order: Order) -> TrialResult | None:
    """Run a trial on a Dask worker; return None if nobody waits for it any more.

    Raises:
        ClusterError: if this worker has other code or other data.
    """
    from distributed import get_worker

    worker = get_worker()
    if "" not in sys.path:
        sys.path.append("")  # rankers may be in the working folder, as for the command line
    key = worker.get_current_task()

    def go_on(done: int, total: int) -> None:
        """End the trial if nobody waits."""
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise _NobodyWaits

    try:
        trial = *prepared(order, f"worker {worker.name}"), order.seed, order.trial
        return run_trial(*trial, threads=1, progress=go_on)
    except _NobodyWaits:
        return None


def prepared(order: Order, me: str) -> tuple[Dataset, Ranker, SimulationConfig]:
    """Return the checked dataset, ranker and config of an order, with all kernels compiled.

    Raises:
        ClusterError: if this process has other code or other data; begins with `me`.
    """
    with _LOCK:  # one thread loads and compiles for all others
        dataset = _dataset(order.locator, order.fingerprint, me)
        ranker, config = _code(order.ranker, order.config, order.code, me)
        compiled = (order.fingerprint, order.ranker, order.config)
        if compiled not in _COMPILED:
            compile_for(dataset, [ranker], config)
            _COMPILED.add(compiled)
    return dataset, ranker, config


_COMPILED: set[tuple[str, str, bytes]] = set()
_LOCK = threading.Lock()


class _NobodyWaits(Exception):
    """Ends a trial whose client has cancelled it, or is gone."""


@lru_cache(2)
def _dataset(locator: Locator, expected: str, me: str) -> Dataset:
    """Load a dataset; raise if it is not the one that was meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client has said all this already
        try:
            dataset = locator.load()
        except EBRankError as problem:
            raise ClusterError(f"{me} cannot load {locator.source}: {problem}") from problem
    content = fingerprint(dataset)
    if content != expected:
        raise ClusterError(
            f"{me} has different data for {locator.source}: fingerprint {content[:8]}, not "
            f"{expected[:8]}. Copy the same files there."
        )
    return dataset


@lru_cache(256)
def _code(text: str, pickled: bytes, expected: str, me: str) -> tuple[Ranker, SimulationConfig]:
    """Make a ranker and a config; raise if their code is not what was meant."""
    try:
        ranker = registry.parse(text)
        config: SimulationConfig = pickle.loads(pickled)
    except (EBRankError, ImportError, AttributeError) as problem:
        raise ClusterError(
            f"{me} cannot import what {text} needs: {problem}. Install it there, or put its folder "
            "on PYTHONPATH, and restart the worker."
        ) from problem
    if lasting_stamp(ranker, config.users) != expected:
        raise ClusterError(
            f"{me} has different code for {text} or its users, or another version of ebrank or a "
            f"library. {SAME_VERSIONS}"
        )
    return ranker, config
