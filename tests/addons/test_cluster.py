"""Trials on a real cluster: the bits of a local run, whatever is lost on the way."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebrank
from ebrank.addons.cluster import cluster
from ebrank.addons.cluster.cluster import Cluster, ClusterAddress, Workers, connected
from ebrank.addons.cluster.worker import Locator, Order, prepared
from ebrank.errors import ClusterError, MissingExtraError, ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.parallel import Interrupted, run
from ebrank.lab.simulation.result import Result, TrialResult
from ebrank.lab.simulation.stamps import fingerprint, lasting_stamp
from ebrank.lab.simulation.storage import StoredTrials
from tests.addons.clusters import OwnCluster, import_from, own_cluster, wait_until
from tests.lab.simulation import mortal
from tests.lab.simulation.test_parallel import bits

RANKERS = [registry.parse(text) for text in ("bm25", "ebrank:estimator=exposure,epsilon=0.1")]
SHORT = SimulationConfig(sessions=80, updates=4)
LONG = SimulationConfig(sessions=100_000, updates=50)
ENDLESS = SimulationConfig(sessions=100_000_000, updates=100_000)
LOCATOR = Locator.of("mq2007-like", scale=0.01)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    with own_cluster(tmp_path_factory.mktemp("nodes")) as started:
        yield started


@pytest.fixture
def nodes(scheduler: OwnCluster) -> OwnCluster:
    """A cluster with two workers, whatever tests before have done to it."""
    scheduler.ensure("one", "two")
    return scheduler


@pytest.fixture(scope="module")
def local(dataset: Dataset) -> Result:
    """Three long trials in this process."""
    (result,) = run(dataset, RANKERS[1:], LONG, trials=3)
    return result


@pytest.fixture
def client(nodes: OwnCluster) -> Iterator[Cluster]:
    with connected(str(nodes.file), pytest.fail) as found:
        yield found


@pytest.fixture
def workers(client: Cluster, dataset: Dataset) -> Workers:
    return client.workers(dataset, LOCATOR)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("dask://node1:8786", ClusterAddress(scheduler="tcp://node1:8786")),
        ("tcp://10.0.0.1:1", ClusterAddress(scheduler="tcp://10.0.0.1:1")),
        ("tls://[::1]:8786", ClusterAddress(scheduler="tls://[::1]:8786")),
        ("local:3", ClusterAddress(processes=3)),
    ],
)
def test_an_address_is_read(text: str, address: ClusterAddress) -> None:
    assert ClusterAddress.read(text) == address


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("dask://node1", "not the address of a cluster. Use dask://HOST:PORT"),
        ("http://node1:8786", "not the address of a cluster"),
        ("local:0", "say how many workers"),
        ("local:", "say how many workers"),
        ("nowhere.json", "is neither a file nor the address"),
        (__file__, "is not a scheduler file"),
    ],
)
def test_no_address_is_told(text: str, problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        ClusterAddress.read(text)


def test_without_dask_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(MissingExtraError, match=r"run: pip install 'ebrank\[cluster\]'"),
        connected("local:1"),
    ):
        pass


def test_a_locator_means_the_same_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Locator.of("mine").source == str(tmp_path / "mine")
    named = Locator.of("MQ2008", data_dir="data", baseline_feature=None, fold=None)
    assert named == Locator(
        "MQ2008", (("data_dir", str(tmp_path / "data")), ("baseline_feature", None))
    )


def order(dataset: Dataset, **changes: object) -> Order:
    given: dict[str, object] = {
        "locator": LOCATOR,
        "fingerprint": fingerprint(dataset),
        "ranker": "bm25",
        "config": pickle.dumps(SHORT),
        "seed": 0,
        "trial": 0,
        "code": lasting_stamp(registry.parse("bm25"), SHORT.users),
    }
    return Order(**{**given, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"fingerprint": "0123456789"}, "W has different data for mq2007-like: .*, not 01234567"),
        ({"locator": Locator("/no/such/folder")}, "W cannot load /no/such/folder: .*no such"),
        ({"code": "another"}, "W has different code for bm25"),
        ({"ranker": "absent_module:Ranker"}, "W cannot import what absent_module:Ranker needs"),
        ({"config": b"cabsent_module\nUsers\n."}, "W cannot import what bm25 needs"),
    ],
)
def test_a_worker_refuses_what_it_has_otherwise(
    dataset: Dataset, changes: dict[str, object], problem: str
) -> None:
    prepared(order(dataset), "W")
    with pytest.raises(ClusterError, match=problem):
        prepared(order(dataset, **changes), "W")


@pytest.mark.slow
def test_nobody_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"),
        connected("dask://127.0.0.1:9"),
    ):
        pass


@pytest.mark.slow
def test_a_run_that_cannot_begin_keeps_nothing_of_the_one_before(
    workers: Workers, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise ClusterError("this cannot run on a cluster")

    run(dataset, RANKERS[:1], SHORT, trials=1, pool=workers)
    monkeypatch.setattr(cluster, "_portable_code", refuse)
    store = StoredTrials(tmp_path, dataset, SHORT, seed=0)
    with pytest.raises(ClusterError, match="this cannot run"):
        run(dataset, RANKERS[1:], SHORT, trials=1, pool=workers, store=store)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_workers_are_for_one_dataset(dataset: Dataset, workers: Workers) -> None:
    with pytest.raises(ParameterError, match="another dataset"):
        run(ebrank.load("mq2007-like", scale=0.02), RANKERS, SHORT, pool=workers)


@pytest.mark.slow
def test_trouble_in_a_trial_is_told(dataset: Dataset, workers: Workers) -> None:
    failing = registry.parse("tests.lab.simulation.mortal:Failing")
    with pytest.raises(ParameterError, match="failed while learning: ValueError: no such luck"):
        run(dataset, [failing], SHORT, pool=workers)


@pytest.mark.slow
def test_a_lost_worker_costs_its_trial_only(
    dataset: Dataset, local: Result, nodes: OwnCluster, workers: Workers
) -> None:
    def lose_the_first() -> None:
        wait_until(lambda: nodes.running() == 2)
        nodes.kill("one")

    killer = threading.Thread(target=lose_the_first)
    killer.start()
    (result,) = run(dataset, RANKERS[1:], LONG, trials=3, pool=workers)
    killer.join()
    assert nodes.names() == ["two"]
    assert bits([result]) == bits([local])


@pytest.mark.slow
def test_a_trial_that_kills_its_workers_is_called_off(
    dataset: Dataset, nodes: OwnCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes.scheduler, "allowed_failures", 0)
    nodes.ensure("one")
    deadly = registry.parse("tests.lab.simulation.mortal:Deadly")
    with (
        connected(str(nodes.file), pytest.fail) as client,
        pytest.raises(ClusterError, match=r"trial 0 of .*Deadly has lost too many workers"),
    ):
        run(dataset, [deadly], SHORT, trials=1, pool=client.workers(dataset, LOCATOR))


@pytest.mark.slow
def test_no_workers_are_waited_for(
    dataset: Dataset, local: Result, scheduler: OwnCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.2)
    scheduler.ensure()
    notes: list[str] = []
    first = threading.Timer(1.0, scheduler.add, ["first"])
    first.start()
    with connected(str(scheduler.file), notes.append) as client:
        first.join()
        assert len(notes) == 1
        assert "has no workers yet; waiting. Start one: `dask worker " in notes[0]
        assert f"--scheduler-file {scheduler.file}" in notes[0]

        def replace_the_first() -> None:
            scheduler.kill("first")
            wait_until(lambda: len(notes) == 2)
            scheduler.add("one")

        replacing = threading.Thread(target=replace_the_first)
        replacing.start()
        (result,) = run(dataset, RANKERS[1:], LONG, trials=3, pool=client.workers(dataset, LOCATOR))
        replacing.join()
    assert "no worker is left; waiting" in notes[1]
    assert len(notes) == 2
    assert bits([result]) == bits([local])


@pytest.mark.slow
def test_a_lost_scheduler_is_told_and_leaves_what_is_finished(
    dataset: Dataset, tmp_path: Path
) -> None:
    own = own_cluster(tmp_path, "only", apart=True)

    class Losing(StoredTrials):
        """A store that loses the scheduler once it has a trial."""

        def save(self, ranker: Ranker, trial: int, result: TrialResult) -> None:
            super().save(ranker, trial, result)
            only.process.kill()

    store = Losing(tmp_path / "runs", dataset, LONG, 0)
    lost = pytest.raises(ClusterError, match=r"the scheduler at .*scheduler.json is gone")
    with own as only, connected(str(only.file), print) as client, lost:
        pool = client.workers(dataset, LOCATOR)
        run(dataset, RANKERS[1:], LONG, trials=50, pool=pool, store=store)
    assert list(store.folder.glob("*.npz"))


@pytest.mark.slow
def test_ctrl_c_ends_long_trials_at_their_next_update(
    nodes: OwnCluster, dataset: Dataset, workers: Workers
) -> None:
    main = threading.main_thread().ident

    def interrupt() -> None:
        wait_until(lambda: nodes.running() == 2)
        signal.pthread_kill(main or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(Interrupted) as caught:
        run(dataset, RANKERS[1:], ENDLESS, trials=4, pool=workers)
    assert caught.value.results[0].trials == ()
    wait_until(lambda: nodes.running() == 0)


@pytest.mark.slow
def test_a_worker_with_another_version_or_without_ebrank_is_refused_before_anything_runs(
    nodes: OwnCluster, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import numpy; numpy.__version__ = '2.1.9'\n")
    hiding = tmp_path / "hiding" / "ebrank"
    hiding.mkdir(parents=True)
    (hiding / "__init__.py").write_text("raise ModuleNotFoundError('No module named ebrank')\n")
    nodes.add("odd", PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    nodes.add("bare", PYTHONPATH=str(hiding.parent))
    with pytest.raises(ClusterError) as caught, connected(str(nodes.file)):
        pass
    faults = str(caught.value).split("; ")
    assert len(faults) == 2
    odd, bare = sorted(faults, key=lambda fault: "bare" in fault)
    assert odd.startswith("worker odd at tcp://127.0.0.1:")
    assert f"has NumPy 2.1.9 (here {np.__version__})" in odd
    assert re.match(r"worker bare at .* cannot import ebrank: .*No module", bare)


@pytest.mark.slow
def test_a_worker_with_another_source_is_refused_even_if_it_joins_late(
    dataset: Dataset, nodes: OwnCluster, client: Cluster, workers: Workers, tmp_path: Path
) -> None:
    source = Path(ebrank.__file__).parent
    shutil.copytree(source, tmp_path / "other" / "ebrank", ignore=shutil.ignore_patterns("*.pyc"))
    with (tmp_path / "other" / "ebrank" / "equations.py").open("a") as file:
        file.write("# another version\n")
    nodes.add("late", PYTHONPATH=str(tmp_path / "other"))
    with pytest.raises(ClusterError, match=r"worker late .*has source of ebrank .*\(here"):
        client.check_versions()
    with pytest.raises(ClusterError, match=r"worker late has different code for .*another version"):
        run(dataset, RANKERS, LONG, trials=9, pool=workers)


def _typed_at_a_prompt() -> Ranker:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec((Path(mortal.__file__)).read_text(), names)
    ranker: Ranker = names["Plain"]()
    return ranker


@pytest.mark.slow
def test_own_rankers_run_where_their_code_is_the_same(
    dataset: Dataset,
    nodes: OwnCluster,
    workers: Workers,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (Path(mortal.__file__)).read_text()
    changed = text.replace("self.rate)", "2 * self.rate)")
    assert changed != text
    for folder, own in (("here", text), ("there", text), ("elsewhere", changed)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "own_rankers.py").write_text(own)
    monkeypatch.syspath_prepend(tmp_path / "here")
    ranker = registry.parse("own_rankers:Plain:rate=0.25")
    with pytest.raises(ClusterError, match=r"(one|two) cannot import what own_rankers:Plain"):
        run(dataset, [ranker], SHORT, pool=workers)
    nodes.client.run(import_from, str(tmp_path / "there"))
    results = run(dataset, [ranker], SHORT, trials=2, pool=workers)
    assert bits(results) == bits(run(dataset, [ranker], SHORT, trials=2))
    with pytest.raises(ClusterError, match="its code is in no file"):
        run(dataset, [_typed_at_a_prompt()], SHORT, pool=workers)
    nodes.ensure()
    inherited = os.environ.get("PYTHONPATH", "")
    nodes.add("other", PYTHONPATH=f"{tmp_path / 'elsewhere'}{os.pathsep}{inherited}")
    with pytest.raises(ClusterError, match="other has different code for own_rankers:Plain"):
        run(dataset, [ranker], SHORT, pool=workers)
