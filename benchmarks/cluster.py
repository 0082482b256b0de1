"""What a cluster costs and gains: overhead of a trial, and two workers against one."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figure import Figure, best_seconds
from ebrank.addons.cluster.cluster import Cluster, connected
from ebrank.addons.cluster.worker import Locator
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.parallel import run

SMALL = Locator.of("mq2007-like", scale=0.01)
LARGE = Locator.of("mq2007-like", scale=0.5)
SHORT = SimulationConfig(sessions=80, updates=4)
MANY, FEW = 100, 8


def figures() -> Iterator[Figure]:
    """Yield the cluster's figures."""
    with connected("local:1") as one:
        yield overhead(one)
        alone = large_trials(one)
    with connected("local:2") as two:
        gain = alone / large_trials(two)
    yield Figure(
        f"{FEW} trials of EBRank on half of mq2007-like, two workers against one",
        f"{gain:.2f}× as fast",
        "≥ 1.5×",
        gain >= 1.5,
    )


def overhead(cluster: Cluster) -> Figure:
    """Return what a trial costs beyond its own time, if one worker runs many short ones."""
    data, rankers = SMALL.load(), [registry.parse("bm25")]
    workers = cluster.workers(data, SMALL)
    run(data, rankers, SHORT, trials=2, pool=workers)  # compiles
    there = best_seconds(lambda: run(data, rankers, SHORT, trials=MANY, pool=workers))
    here = best_seconds(lambda: run(data, rankers, SHORT, trials=MANY))
    each = (there - here) / MANY * 1000
    return Figure(
        f"{MANY} trials on a worker against as many here: overhead of each",
        f"{each:.1f} ms ({there / MANY * 1000:.1f} ms against {here / MANY * 1000:.1f} ms)",
        "≤ 20 ms",
        each <= 20,
    )


def large_trials(cluster: Cluster) -> float:
    """Return the seconds of some trials of a second or so each, the dataset open already."""
    data, rankers = LARGE.load(), [registry.parse("ebrank:estimator=exposure")]
    workers = cluster.workers(data, LARGE)
    run(data, rankers, trials=2 * cluster.slots, pool=workers)
    return best_seconds(lambda: run(data, rankers, trials=FEW, pool=workers), repeats=2)
