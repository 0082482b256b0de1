"""How fast the simulator is: whole runs, the sessions alone, and the first run on a new machine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ebrank
from benchmarks.figure import Figure, python_output
from ebrank.lab.data import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import compile_for, run_trial
from ebrank.lab.simulation.result import TrialResult

EBRANK = "ebrank:estimator=exposure"
CALLED = {EBRANK: "EBRank", "auto": "`auto`"}
AUTHORS_SECONDS = 148  # CPU seconds of the released code on MQ2008 Fold1, 14,560 sessions
MQ2008 = Path(__file__).parents[2] / "shared" / "data" / "MQ2008" / "Fold1"


def figures() -> Iterator[Figure]:
    """Yield the simulator's figures."""
    yield from whole_runs()
    yield from sessions_alone()
    yield growth_with_candidates()
    yield from first_runs()


def whole_runs() -> Iterator[Figure]:
    """Yield EBRank's run times, everything included."""
    if MQ2008.is_dir():
        run = best_run(ebrank.load(MQ2008), EBRANK, sessions=14_560)
        yield Figure(
            "EBRank on MQ2008 Fold1, 14,560 sessions",
            f"{told(run)}; {AUTHORS_SECONDS / run.seconds:.0f}× as fast as the authors' code",
            "≤ 0.3 s",
            run.seconds <= 0.3,
        )
    for ranker, name, limit in (
        (EBRANK, "mq2007-like", 0.8),
        (EBRANK, "mslr10k-like", 8.0),
        ("auto", "mslr10k-like", 12.0),
    ):
        run = best_run(ebrank.load(name), ranker, repeats=3 if limit < 1 else 2)
        yield Figure(
            f"{CALLED[ranker]} on {name}, {run.sessions[-1]:,} sessions",
            told(run),
            f"≤ {limit} s",
            run.seconds <= limit,
        )
    for ranker, limit in ((EBRANK, 25), ("auto", 40)):
        seconds, gibibytes, text = largest_run(ranker)
        yield Figure(
            f"{CALLED[ranker]} on mslr30k-like, in a process of its own",
            f"{text}; {gibibytes:.1f} GiB at most, the dataset's making included",
            f"≤ {limit} s, ≤ 6 GiB",
            seconds <= limit and gibibytes <= 6,
        )


def sessions_alone() -> Iterator[Figure]:
    """Yield sessions per second, learning and measuring left out."""
    for ranker, data, least in (
        (EBRANK, made_up(9835, 122, 8), 3e6),
        ("auto", made_up(9835, 122, 8), 1e6),
        ("pdgd", made_up(1500, 41, 46), 4e5),
        ("dbgd", made_up(1500, 41, 46), 1e5),
        ("mgd", made_up(1500, 41, 46), 1e5),
    ):
        run = best_run(data, ranker)
        rate = run.sessions[-1] / run.serving_seconds
        shape = f"{data.candidates[0]} candidates, {data.n_features} features"
        yield Figure(
            f"sessions alone, {ranker}, {shape}",
            f"{rate / 1e6:.2f} M sessions/s",
            f"≥ {least / 1e6:g} M",
            rate >= least,
        )


def growth_with_candidates() -> Figure:
    """Return what a session costs with a thousand candidates, against a hundred."""
    runs = [best_run(made_up(200_000 // n, n, 8), EBRANK) for n in (100, 1000)]
    few, many = (run.serving_seconds / run.sessions[-1] for run in runs)
    return Figure(
        "cost of a session, 1,000 candidates against 100, the paper's session count",
        f"{many / few:.2f}×",
        "≤ 2×",
        many <= 2 * few,
    )


def first_runs() -> Iterator[Figure]:
    """Yield how long the first runs take with nothing compiled yet."""
    for label, names, limit in (
        ("one ranker (EBRank)", ["ebrank"], 10),
        ("all rankers", list(registry.built_in()), 40),
    ):
        with tempfile.TemporaryDirectory() as cache:
            cold = compile_seconds(names, cache)
            again = compile_seconds(names, cache)
        yield Figure(
            f"compilation on a fresh machine, {label}",
            f"{cold - again:.1f} s",
            f"≤ {limit} s",
            cold - again <= limit,
        )


def best_run(
    data: Dataset, ranker: str, *, sessions: int | None = None, repeats: int = 3
) -> TrialResult:
    """Return the fastest of several runs, with everything compiled beforehand."""
    config, parsed = SimulationConfig(sessions=sessions), registry.parse(ranker)
    compile_for(data, [parsed], config)
    runs = [run_trial(data, parsed, config, seed=1, trial=0) for _ in range(repeats)]
    return min(runs, key=lambda run: run.seconds)


def told(run: TrialResult) -> str:
    """Return a run's time and where it went."""
    serving, learning = run.serving_seconds / run.seconds, run.learning_seconds / run.seconds
    return f"{run.seconds:.2f} s (serving {serving:.0%}, learning {learning:.0%})"


def made_up(n_queries: int, candidates: int, n_features: int) -> Dataset:
    """Return a dataset where every query has the same number of candidates."""
    rng = np.random.default_rng(0)
    rows = n_queries * candidates
    features = rng.random((rows, n_features), dtype=np.float32)
    splits = np.repeat(np.arange(3, dtype=np.int8), [n_queries // 2, n_queries // 4, n_queries])
    return Dataset(
        name=f"{n_queries}×{candidates}",
        features=features,
        labels=rng.choice(3, rows, p=[0.74, 0.2, 0.06]).astype(np.int8),
        query_pointers=np.arange(n_queries + 1) * candidates,
        query_ids=np.arange(n_queries).astype(str),
        query_splits=splits[:n_queries],
        baseline=features[:, 0].copy(),
        feature_ids=np.arange(1, n_features + 1, dtype=np.int32),
        max_label=2,
    )


LARGEST = """
import json, resource, ebrank
import sys
from benchmarks.simulation import best_run, told
run = best_run(ebrank.load("mslr30k-like"), sys.argv[1], repeats=1)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([run.seconds, peak, told(run)]))
"""

COMPILE = """
import sys, time, ebrank
from ebrank.lab.rankers import registry
from ebrank.lab.simulation.engine import compile_for
from ebrank.lab.simulation.config import SimulationConfig
data = ebrank.load("mq2007-like", scale=0.02)
start = time.perf_counter()
compile_for(data, [registry.parse(name) for name in sys.argv[1:]], SimulationConfig())
print(time.perf_counter() - start)
"""


def largest_run(ranker: str) -> tuple[float, float, str]:
    """Return seconds, peak memory in GiB and the breakdown of a run on mslr30k-like."""
    seconds, peak, text = json.loads(python_output(LARGEST, ranker))
    return seconds, peak, text


def compile_seconds(names: list[str], cache: str) -> float:
    """Return the time of a tiny run of some rankers with this kernel cache."""
    return float(python_output(COMPILE, *names, EBRANK_CACHE=cache))
