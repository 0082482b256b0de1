"""Trials on the workers of a Dask cluster: the same results as here, and in the same store.

`connected` finds the cluster and makes sure that all its workers run the same code. Its `workers`
replace the threads in `parallel.run`: each trial goes out as a small order (see `worker`) and comes
back as its arrays. Results are saved here, so workers need no common disk.

If a worker is lost, Dask runs its trial again elsewhere; other trials go on.
"""

from __future__ import annotations

import json
import logging
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ebrank.addons.cluster import worker
from ebrank.addons.cluster.worker import PROCESSOR, SAME_VERSIONS, Locator, Order
from ebrank.environment.extras import import_extra
from ebrank.environment.paths import expanded
from ebrank.errors import ClusterError, ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.parallel import PlannedTrial, Task
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.stamps import fingerprint, lasting_stamp

if TYPE_CHECKING:
    from distributed import Client, Future

Note = Callable[[str], None]
FORMS = "dask://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, local:NUMBER, or a scheduler file"
CONNECT_SECONDS = 10
LOOK_SECONDS = 5
"""How long to wait for a result before checking that some worker is left."""
STOP_SECONDS = 10
"""How long to wait for a finished trial's result after canceling the rest."""
UNREACHABLE = (CancelledError, OSError, TimeoutError)
"""What Dask raises when the scheduler is gone."""


@dataclass(frozen=True)
class ClusterAddress:
    """Where a cluster is.

    Attributes:
        scheduler: URL of the scheduler, if known.
        file: holds the scheduler's URL otherwise.
        processes: how many workers to start on this machine instead.
    """

    scheduler: str = ""
    file: str = ""
    processes: int = 0

    @classmethod
    def read(cls, text: str) -> ClusterAddress:
        """Return the address that a text gives.

        >>> read = ClusterAddress.read
        >>> read("dask://node1:8786").scheduler, read("local:4").processes
        ('tcp://node1:8786', 4)
        """
        kind, _, rest = text.partition(":")
        if kind == "local":
            if not rest.isdecimal() or int(rest) < 1:
                raise ParameterError(f"{text!r}: say how many workers to start, as in local:4")
            return cls(processes=int(rest))
        if "://" in text:
            host, _, port = rest.removeprefix("//").rpartition(":")
            if kind not in ("dask", "tcp", "tls") or not host or not port.isdecimal():
                raise ParameterError(f"{text!r} is not the address of a cluster. Use {FORMS}.")
            return cls(scheduler=f"{'tcp' if kind == 'dask' else kind}://{host}:{port}")
        return cls(file=_scheduler_file(text))

    def __str__(self) -> str:
        return self.scheduler or self.file or f"local:{self.processes}"


def _scheduler_file(text: str) -> str:
    """Return the path of a scheduler file, if it is one."""
    path = expanded(text)
    try:
        address = json.loads(Path(path).read_bytes())["address"]
    except FileNotFoundError:
        raise ParameterError(
            f"{text!r} is neither a file nor the address of a cluster. Use {FORMS}."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ParameterError(
            f"{text} is not a scheduler file. `dask scheduler --scheduler-file` writes one."
        ) from problem
    assert address
    return str(path)


@contextmanager
def connected(text: str, note: Note = print) -> Iterator[Cluster]:
    """Yield the cluster at an address, once it has workers and all of them have the same code.

    Args:
        text: the address, in one of the `FORMS`.
        note: called with messages for the user.

    Raises:
        ClusterError: if no scheduler answers, or a machine has other versions.
        MissingExtraError: if Dask is not installed.
    """
    address = ClusterAddress.read(text)
    dask = import_extra("distributed", extra="cluster", purpose="to run trials on a cluster")
    with _client(dask, address) as client:
        cluster = Cluster(client, address, note)
        cluster.wait_for_workers()
        cluster.check_versions()
        yield cluster


@contextmanager
def _client(dask: Any, address: ClusterAddress) -> Iterator[Client]:  # noqa: ANN401 (a module)
    if address.processes:
        with (
            dask.LocalCluster(
                n_workers=address.processes,
                threads_per_worker=1,
                memory_limit=0,
                silence_logs=logging.ERROR,
                preload=worker.__name__,
                dashboard_address="127.0.0.1:0",
            ) as local,
            dask.Client(local, set_as_default=False) as client,
        ):
            yield client
        return
    where = {"scheduler_file": address.file} if address.file else {"address": address.scheduler}
    try:
        client = dask.Client(**where, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as problem:
        raise ClusterError(
            f"no Dask scheduler answers at {address}: {problem}. Start one: `dask scheduler`."
        ) from problem
    with client:
        yield client


@dataclass(frozen=True, eq=False)
class Cluster:
    """A Dask cluster, with this process as its client."""

    client: Client
    address: ClusterAddress
    note: Note

    @property
    def slots(self) -> int:
        """How many trials run in parallel."""
        return sum(self.client.nthreads().values())

    def workers(self, dataset: Dataset, locator: Locator) -> Workers:
        """Return where trials on a dataset run, given how workers find it."""
        return Workers(self, dataset, locator)

    def wait_for_workers(self) -> None:
        """Wait until there is a worker; say so if there is none yet."""
        if not self.slots:
            self.note(f"{self.address} has no workers yet; waiting. {self.how_to_start()}")
            self.client.wait_for_workers(1)

    def how_to_start(self) -> str:
        """Return how to add a worker."""
        where = f"--scheduler-file {self.address}" if self.address.file else str(self.address)
        return f"Start one: `dask worker {where} --nthreads 1`."

    def check_versions(self) -> None:
        """Raise if a machine lacks ebrank, or has another version of code that decides a trial."""
        try:
            self.client.run_on_scheduler(worker.facts)
        except (ImportError, AttributeError) as problem:
            raise ClusterError(
                f"the scheduler at {self.address} cannot import ebrank: {problem}. Start it in the "
                "same environment as the workers."
            ) from problem
        here = worker.facts()
        faults, others = [], []
        names = {
            address: about["name"]
            for address, about in self.client.scheduler_info()["workers"].items()
        }
        answers: dict[str, Any] = self.client.run(worker.facts, on_error="return")
        for address, there in answers.items():
            name = names.get(address, address)
            called = f"worker {name}" if name == address else f"worker {name} at {address}"
            if isinstance(there, BaseException):
                faults.append(f"{called} cannot import ebrank: {there}")
                continue
            differ = ", ".join(worker.differences(here, there))
            if differ:
                faults.append(f"{called} has {differ}")
            elif there[PROCESSOR] != here[PROCESSOR]:
                others.append(f"{called} has {there[PROCESSOR]} (here {here[PROCESSOR]})")
        if faults:
            raise ClusterError(f"{'; '.join(faults)}. {SAME_VERSIONS}")
        if others:
            self.note(f"different processors may change the last digits: {'; '.join(others)}")


class Workers:
    """The workers of a cluster, as a place for trials on one dataset."""

    def __init__(self, cluster: Cluster, dataset: Dataset, locator: Locator) -> None:
        self.cluster = cluster
        self._dataset = dataset
        self._locator = locator
        self._fingerprint = fingerprint(dataset)
        self._futures: dict[Task, Future[TrialResult | None]] = {}
        self._handed: tuple[Task, TrialResult] | None = None

    def run(self, trials: Mapping[Task, PlannedTrial]) -> Iterator[tuple[Task, TrialResult]]:
        """Yield the results of some trials as they arrive; workers do not say how far they are.

        Raises:
            ClusterError: if a worker cannot run them, or the scheduler is gone.
        """
        self._futures, self._handed = {}, None  # if this run fails, it must not get the last one's
        if any(planned.dataset is not self._dataset for planned in trials.values()):
            raise ParameterError("these workers are for another dataset")
        codes = {
            what: _portable_code(*what)
            for what in {(planned.ranker, planned.config) for planned in trials.values()}
        }
        pickled = {config: pickle.dumps(config) for _, config in codes}
        orders = [
            Order(
                self._locator,
                self._fingerprint,
                str(planned.ranker),
                pickled[planned.config],
                planned.seed,
                planned.trial,
                codes[planned.ranker, planned.config],
            )
            for planned in trials.values()
        ]
        # One message for all; those of one group wait at the scheduler, in order.
        group, ready = f"ebrank-{uuid.uuid4().hex}", SimpleQueue[Task]()
        keys = [(group, *task) for task in trials]
        futures = self.cluster.client.map(worker.run_order, orders, key=keys, pure=False)
        for task, future in zip(trials, futures, strict=True):
            self._futures[task] = future
            future.add_done_callback(lambda _, task=task: ready.put(task))
        while self._futures:
            task = self._next(ready)
            result = self._result(trials[task], self._futures[task])
            if result is not None:
                self._handed = task, result
                del self._futures[task]
                yield self._handed

    def stop(self) -> Iterator[tuple[Task, TrialResult]]:
        """Cancel all trials; yield the results of those that have finished."""
        if self._handed is not None:  # the caller that got it may have been interrupted
            yield self._handed
        finished = {t: future for t, future in self._futures.items() if future.status == "finished"}
        with suppress(*UNREACHABLE):
            waiting = [future for task, future in self._futures.items() if task not in finished]
            self.cluster.client.cancel(waiting)
            for task, future in finished.items():
                result = future.result(timeout=STOP_SECONDS)
                if result is not None:
                    yield task, result
        self._futures, self._handed = {}, None

    def _next(self, ready: SimpleQueue[Task]) -> Task:
        """Return the next task that is done; meanwhile, say once each time no worker is left."""
        noted = False
        while True:
            with suppress(Empty):
                return ready.get(timeout=LOOK_SECONDS)
            with suppress(*UNREACHABLE):
                gone = not self.cluster.slots
                if gone and not noted:
                    self.cluster.note(f"no worker is left; waiting. {self.cluster.how_to_start()}")
                noted = gone

    def _result(
        self, planned: PlannedTrial, future: Future[TrialResult | None]
    ) -> TrialResult | None:
        """Return a trial's result."""
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as problem:
            raise ClusterError(
                f"trial {planned.trial} of {planned.ranker} has lost too many workers. They may "
                "have too little memory: see --memory-limit of `dask worker`, and their logs."
            ) from problem
        except UNREACHABLE as problem:
            raise ClusterError(
                f"the scheduler at {self.cluster.address} is gone: {problem}"
            ) from problem


def _portable_code(ranker: Ranker, config: SimulationConfig) -> str:
    """Return the stamp of code that other machines can have too; raise if they cannot."""
    try:
        named = registry.parse(str(ranker)) == ranker
    except ParameterError:
        named = False
    code = lasting_stamp(ranker, config.users) if named else None
    if code is None:
        raise ClusterError(
            f"{ranker} cannot run on a cluster: its code is in no file that workers can import. "
            "Put it into a module."
        )
    return code
