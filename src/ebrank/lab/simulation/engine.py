"""The loop: warm up, then serve and update twenty times, measuring as it goes (Algorithm 1).

>>> import ebrank
>>> from ebrank.lab.rankers import registry
>>> data = ebrank.load("mq2007-like", scale=0.02)
>>> result = simulate(data, registry.parse("bm25"), seed=1)
>>> result.trials[0].cold_ndcg.shape  # 20 updates, 4 cutoffs
(20, 4)
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

import numpy as np

from ebrank.equations import examination
from ebrank.errors import DataError, EBRankError, ParameterError
from ebrank.kernels import streams
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial, fixed_model
from ebrank.lab.sessions.session import NO_OUTCOME, Schedule, World
from ebrank.lab.simulation import play
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.records import Predictions, Waiting, cum_ndcg, shares
from ebrank.lab.simulation.result import Result, TrialResult, about_config
from ebrank.lab.simulation.supervision import Supervised
from ebrank.lab.simulation.world import assume, ideal_dcg, new_world, stats_of, unseen
from ebrank.typing import Bools, Floats, Ints

Progress = Callable[[int, int], None]
QUERIES_PER_SPLIT = 2
"""Queries per split in a run that serves only to compile the kernels."""


def simulate(
    dataset: Dataset,
    ranker: Ranker,
    config: SimulationConfig | None = None,
    seed: int = 0,
    *,
    trials: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run some trials of a ranker on a prepared dataset.

    The outcome is a pure function of the dataset, the ranker, the config and the seed. `progress`
    is called with the model updates done and to be done.
    """
    config = config or SimulationConfig()
    done = tuple(
        run_trial(dataset, ranker, config, seed, trial, threads=threads, progress=progress)
        for trial in range(trials)
    )
    return Result(dataset.name, str(ranker), about_config(config), seed, done)


def run_trial(
    dataset: Dataset,
    ranker: Ranker,
    config: SimulationConfig,
    seed: int,
    trial: int,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TrialResult:
    """Run one trial: BM25 sessions, a first model, then serve and update in turn."""
    started = time.perf_counter()
    run = _Run(config.judged(dataset), config, streams.trial_key(seed, trial), threads)
    learner = Supervised(ranker, run.trial)
    run.warm_up()
    before = time.perf_counter()
    model = learner.update()
    learning, serving = time.perf_counter() - before, 0.0
    run.foresee(model, update=0)
    for update in range(config.updates):
        before = time.perf_counter()
        with learner.watching(model):
            run.serve(model, update)
        between = time.perf_counter()
        model = learner.update()
        serving += between - before
        learning += time.perf_counter() - between
        with learner.watching(model):
            run.measure(model)
        run.foresee(model, update + 1)
        if progress is not None:
            progress(update + 1, config.updates)
    return run.result(model, (time.perf_counter() - started, serving, learning))


def check_test_queries(dataset: Dataset) -> None:
    """Raise if there is nothing to measure on."""
    if len(dataset.queries_in("test")) == 0:
        raise DataError(
            f"{dataset.name!r} has no test queries to measure on",
            remedy="Add test queries with more than 5 candidates and a relevant item.",
        )


class _Run:
    """A trial under way: the world, and the measurements so far."""

    def __init__(
        self, dataset: Dataset, config: SimulationConfig, key: np.uint64, threads: int | None
    ) -> None:
        self.dataset = dataset
        self.config = config
        self.key = key
        self.threads = threads
        self.world: World = new_world(dataset, config, key)
        self.trial = Trial(
            dataset,
            self.world.relevance,
            stats_of(self.world, config.behaviors),
            config.assumed or config.users.examination,
            key,
            threads,
        )
        steps = np.arange(config.updates + 1)
        self.borders: Ints = config.session_count(dataset) * steps // config.updates
        self.cutoffs: Ints = np.array(config.cutoffs)
        longest = max(*config.cutoffs, config.list_length)
        self.discounts = examination(np.arange(1.0, longest + 1.0))
        self.ideal = ideal_dcg(
            self.world.pointers, self.world.relevance, self.discounts, self.cutoffs
        )
        self.test = dataset.queries_in("test")
        check_test_queries(dataset)
        self.is_test = dataset.query_splits == 2
        self.is_vali = dataset.query_splits == 1
        self.asked: list[Ints] = []
        self.ndcg: list[Floats] = []
        self.cum: list[float] = []
        self.cold: list[Floats] = []
        self.warm: list[Floats] = []
        self.waiting = Waiting(dataset, self.world)
        self.popularity: play.Popularity | None = None
        if config.traffic == "zipf":
            popularity = np.uint64(streams.child(key, streams.POPULARITY))
            self.popularity = play.zipf(popularity, dataset.n_queries)

    def warm_up(self) -> None:
        """Let BM25 serve every query, before anything enters."""
        plan = play.everyone(self.config.warmup_sessions, self.dataset.n_queries)
        baseline = fixed_model(self.dataset.baseline.astype(np.float64))
        self._play(baseline, plan, eta=0.0, begin=-len(plan.times))
        self.world.label_ndcg[:] = 0.0

    def serve(self, model: ScoreModel, update: int) -> None:
        """Run the sessions before an update."""
        self._assume(model)
        first, stop = int(self.borders[update]), int(self.borders[update + 1])
        key = np.uint64(streams.child(self.key, streams.QUERIES))
        asked, plan = play.phase(key, first, stop, self.dataset.n_queries, self.popularity)
        served = self._play(model, plan, self.config.entering_probability, first)
        self.asked.append(asked)
        self.ndcg.append(served)
        before = self.cum[-1] if self.cum else 0.0
        self.cum.append(cum_ndcg(served[self.is_test[asked]], self.config.discount, before))

    def measure(self, model: ScoreModel) -> None:
        """Evaluate a model on the test queries, cold and warm, and record the items at the top."""
        self._assume(model)
        cold, warm = self._best(model, cold=True), self._best(model, cold=False)
        self.cold.append(self._ndcg(cold))
        self.warm.append(self._ndcg(warm))
        self.lists = cold, warm
        self.waiting.note_top(self.world, warm[:, : self.config.list_length])

    def foresee(self, model: ScoreModel, update: int) -> None:
        """Halfway through, record the prior of test items that have not been shown."""
        if update == self.config.updates // 2:
            self.predictions = Predictions(self.dataset, self.trial.sums(), model)

    def result(self, model: ScoreModel, seconds: tuple[float, float, float]) -> TrialResult:
        """Return the measurements."""
        asked, served = np.concatenate(self.asked), np.concatenate(self.ndcg)
        on_test = self.is_test[asked]
        test_queries, test_ndcg = asked[on_test], served[on_test]
        weights = self.config.discount ** np.arange(len(test_ndcg) - 1.0, -1.0, -1.0)
        late = np.arange(len(asked)) >= len(asked) // 2
        late_on_vali = served[self.is_vali[asked] & late]
        return TrialResult(
            sessions=self.borders[1:],
            cold_ndcg=np.array([queries.mean(axis=0) for queries in self.cold]),
            warm_ndcg=np.array([queries.mean(axis=0) for queries in self.warm]),
            cum_ndcg=np.array(self.cum),
            run_ndcg=self._run_ndcg(on_test, test_ndcg),
            cold_ndcg_labels=self._label_ndcg(self.lists[0]),
            warm_ndcg_labels=self._label_ndcg(self.lists[1]),
            run_ndcg_labels=_mean_of(self.world.label_ndcg[self.test].sum(), len(test_ndcg)),
            cold_by_query=self.cold[-1][:, 0],
            warm_by_query=self.warm[-1][:, 0],
            cum_by_query=self._by_query(test_queries, weights * test_ndcg),
            run_by_query=self._by_query(test_queries, test_ndcg) / max(len(test_ndcg), 1),
            test_queries=test_queries,
            test_ndcg=test_ndcg,
            validation_ndcg=_mean_of(late_on_vali.sum(), len(late_on_vali)),
            **self.waiting.waits(self.world),
            calibration=self.predictions.outcome(
                self.trial.sums(), self.world.click[self.world.grades]
            ),
            shares=None if self.dataset.items is None else shares(self.world, asked, served),
            cold_lists=self.lists[0],
            warm_lists=self.lists[1],
            weights=model.weights,
            seconds=seconds[0],
            serving_seconds=seconds[1],
            learning_seconds=seconds[2],
        )

    def _run_ndcg(self, on_test: Bools, test_ndcg: Floats) -> Floats:
        """Return the mean NDCG of test queries' lists up to each checkpoint, NaN before any."""
        counts = np.append(0, np.cumsum(on_test))[self.borders[1:]]
        sums = np.append(0.0, np.cumsum(test_ndcg))[counts]
        mean: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
        return mean

    def _by_query(self, queries: Ints, values: Floats) -> Floats:
        """Return the sum of the sessions' values for each test query."""
        sums = np.bincount(queries, values, minlength=self.dataset.n_queries)
        return np.asarray(sums[self.test])

    def _assume(self, model: ScoreModel) -> None:
        """Weight counts by the model's curve."""
        assumed = model.examination or self.trial.examination
        assume(self.world, self.trial.stats.valuation(assumed))

    def _play(self, model: ScoreModel, plan: Schedule, eta: float, begin: int) -> Floats:
        """Run the planned sessions; return their NDCG in order of time."""
        browse = self.config.users.browse.compiled
        served = play.play(self.world, model, plan, browse, eta, self.key, self.threads, begin)
        if np.any(served == NO_OUTCOME):
            highest = len(self.config.behaviors.all)
            raise ParameterError(
                f"{self.config.users} wrote an outcome that is not one of 0 to {highest}; "
                "declare what users do in the config's behaviors"
            )
        return served

    def _best(self, model: ScoreModel, *, cold: bool) -> Ints:
        """Return the lists (rows) that the model alone would show for the test queries."""
        score = model.cold if cold and model.cold is not None else model.offline
        world = unseen(self.world) if cold else self.world
        return play.best_lists(world, model, score, self.test, len(self.discounts), self.threads)

    def _ndcg(self, lists: Ints) -> Floats:
        """Return the NDCG of test queries' lists (rows) at the cutoffs (columns)."""
        relevance, ideal = self.world.relevance, self.ideal[self.test]
        return play.list_ndcg(lists, relevance, self.discounts, self.cutoffs, ideal)

    def _label_ndcg(self, lists: Ints) -> float:
        """Return the mean NDCG by labels of test queries' lists, at the first cutoff."""
        gain = self.world.gain[self.world.grades]
        cutoff = self.cutoffs[:1]
        ideal = ideal_dcg(self.world.pointers, gain, self.discounts, cutoff)[self.test]
        ndcg = play.list_ndcg(lists, gain, self.discounts, cutoff, ideal)
        return float(ndcg.mean())


def _mean_of(total: float, count: int) -> float:
    """Return a sum over its count, NaN if there is nothing to average."""
    return float(total) / count if count else float("nan")


# --- compilation ---------------------------------------------------------------------------------


def compile_for(dataset: Dataset, rankers: Iterable[Ranker], config: SimulationConfig) -> None:
    """Compile or load every kernel that these rankers need on this dataset, by a tiny run."""
    first = [dataset.queries_in(split)[:QUERIES_PER_SPLIT] for split in SPLITS]
    small = dataset.only(np.concatenate(first))
    short = replace(
        config,
        sessions=4 * small.n_queries,
        updates=2,
        warmup_sessions=min(config.warmup_sessions, 2),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about a run this small mean nothing
        for ranker in rankers:
            with suppress(EBRankError):  # the trial itself will fail with the same error
                run_trial(small, ranker, short, seed=0, trial=0, threads=1)
