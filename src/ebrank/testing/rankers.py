"""What every ranker must do."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ebrank.evidence import Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial, TrialLearner
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial, simulate
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.users import PBM, PositionBased
from ebrank.testing.datasets import tiny
from ebrank.typing import Bools

CONFIG = SimulationConfig(updates=3, sessions=150, warmup_sessions=3)
INDIFFERENT = PBM(setting="perfect", noise=1.0)
"""Users who click whatever they look at, so that clicks tell nothing about relevance."""


def check_ranker(
    ranker: Ranker, dataset: Dataset | None = None, *, learns_from_test: bool = False
) -> None:
    """Run a ranker on small datasets, and raise if it breaks a rule.

    Its text and its pickle restore it; its figures are finite and in range; they are a pure
    function of dataset, config and seed, for any number of threads; trials do not depend on each
    other; it uses no label of a test query, learns nothing from clicks there, and changes neither
    the dataset nor the trial's statistics. Only `oracle` knows labels, and fails for that alone.

    Args:
        ranker: the ranker, with its parameters.
        dataset: what to try it on, if it cannot rank every dataset.
        learns_from_test: whether it may learn from sessions of test queries. Figures on them then
            mean something else.
    """
    data = tiny() if dataset is None else dataset
    check_declaration(ranker, data)
    check_repeats(ranker, data)
    check_trials_are_apart(ranker, data)
    check_dataset_is_only_read(ranker, data)
    check_statistics_are_only_read(ranker, data)
    check_odd_experiments(ranker, data)
    check_threads(ranker, tiny(sizes=[3 + i % 8 for i in range(150)]) if dataset is None else data)
    check_labels_are_secret(ranker, data)
    if not learns_from_test:
        check_test_clicks_do_not_teach(ranker, data)


def check_declaration(ranker: Ranker, data: Dataset) -> None:
    """Text and pickle restore the ranker, and each parameter has a help text."""
    again = registry.parse(str(ranker))
    assert again == ranker, f"{ranker} reads back as {again!r}"
    assert hash(again) == hash(ranker), f"{ranker} and its copy have different hashes"
    assert pickle.loads(pickle.dumps(ranker)) == ranker, f"{ranker} changes when pickled"
    assert ranker.help.strip().endswith("."), f"{ranker}: help must be a sentence"
    for parameter in ranker.parameters():
        assert parameter.help, f"{ranker}: the parameter {parameter.name} has no help"
        parameter.check(ranker.value(parameter.name), ranker.name)


def check_repeats(ranker: Ranker, data: Dataset) -> None:
    """The same seed gives the same bits, another one does not, and figures are in range."""
    first = _run(ranker, data)
    check_ranges(first, CONFIG)
    _same(f"{ranker}, run twice with one seed", first, _run(ranker, data))
    other = _run(ranker, data, seed=2)
    assert "test_ndcg" in differences(first, other), f"{ranker}: another seed changes nothing"


def check_threads(ranker: Ranker, data: Dataset) -> None:
    """The number of threads changes nothing."""
    single = _run(ranker, data, threads=1)
    for threads in (2, 5):
        _same(f"{ranker} on {threads} threads", single, _run(ranker, data, threads=threads))


def check_trials_are_apart(ranker: Ranker, data: Dataset) -> None:
    """A trial is the same alone and among others."""
    trials = simulate(data, ranker, CONFIG, seed=1, trials=2).trials
    alone = run_trial(data, ranker, CONFIG, seed=1, trial=1)
    _same(f"{ranker}, the second trial alone", trials[1], alone)


def check_labels_are_secret(ranker: Ranker, data: Dataset) -> None:
    """Where clicks tell nothing about relevance, other labels of test queries change nothing."""
    everywhere = np.ones(data.n_rows, np.bool_)
    differing = _differing(ranker, data, replace(CONFIG, users=INDIFFERENT), everywhere)
    assert not differing, f"{ranker} knows the labels of test queries: {differing} differs"


def check_test_clicks_do_not_teach(ranker: Ranker, data: Dataset) -> None:
    """Other labels of test queries, hence other clicks there, change nothing about the others."""
    differing = _differing(ranker, data, CONFIG, ~_on_test(data))
    assert not differing, f"{ranker} learns from clicks on test queries: {differing} differs"


def _differing(ranker: Ranker, data: Dataset, config: SimulationConfig, rows: Bools) -> str:
    """Return what differs about some rows if labels of test queries are others, "" if nothing."""
    flipped = np.where(_on_test(data), data.max_label - data.labels, data.labels).astype(np.int8)
    learned = []
    for labels in (data.labels, flipped):
        candidate, watch = watched(ranker)
        run_trial(replace(data, labels=labels), candidate, config, seed=3, trial=0, threads=1)
        learned.append(_learned(watch, rows))
    same, other = learned
    return next((name for name in same if not np.array_equal(same[name], other[name])), "")


def _on_test(data: Dataset) -> Bools:
    on_test: Bools = np.repeat(data.query_splits == 2, data.candidates)
    return on_test


def _learned(watch: Watched, rows: Bools) -> dict[str, npt.NDArray[Any]]:
    """Return what a ranker learned at each update, and what its users were shown and did.

    That is its weights, the parameters of its formulas, and the two numbers of each of the rows.
    """
    learned: dict[str, npt.NDArray[Any]] = {}
    for update, model in enumerate(watch.models):
        parts = {
            "a": model.a[rows],
            "b": np.broadcast_to(model.b, model.a.shape)[rows],
            "serve": model.serve.parameters,
            "offline": model.offline.parameters,
            "weights": np.zeros(0) if model.weights is None else model.weights,
        }
        learned |= {f"{name} at update {update}": values for name, values in parts.items()}
    assert watch.trial is not None
    return learned | {"what users were shown": watch.trial.stats.counts[rows]}


def check_dataset_is_only_read(ranker: Ranker, data: Dataset) -> None:
    """The caller's arrays stay as they are."""
    names = [f.name for f in fields(data) if isinstance(getattr(data, f.name), np.ndarray)]
    before = {name: getattr(data, name).copy() for name in names}
    _run(ranker, data)
    for name in names:
        assert np.array_equal(getattr(data, name), before[name]), f"{ranker} changed {name}"


def check_statistics_are_only_read(ranker: Ranker, data: Dataset) -> None:
    """What users did stays as it is, and so does what they want."""
    candidate, watch = watched(ranker)
    run_trial(data, candidate, CONFIG, seed=1, trial=0, threads=1)
    assert not watch.changed, f"{ranker} changed {', '.join(sorted(watch.changed))} of the trial"


def check_odd_experiments(ranker: Ranker, data: Dataset) -> None:
    """Long and short lists, one update or many, users who look only at the first rank."""
    for config in (
        SimulationConfig(updates=1, sessions=60, warmup_sessions=0),
        SimulationConfig(updates=8, sessions=24, list_length=1, cutoffs=(1,)),
        SimulationConfig(updates=2, sessions=60, list_length=30, initial_candidates=(1, 1)),
        SimulationConfig(updates=2, sessions=60, users=PositionBased(Examination(cutoff=1))),
    ):
        check_ranges(run_trial(data, ranker, config, seed=1, trial=0), config)


def check_ranges(result: TrialResult, config: SimulationConfig) -> None:
    """Every figure is finite and in its range."""
    for measure in fields(TrialResult):
        value = getattr(result, measure.name)
        assert value is None or np.all(np.isfinite(value)), f"{measure.name} is not finite"
    for name in ("cold_ndcg", "warm_ndcg", "cold_by_query", "warm_by_query", "test_ndcg"):
        values = getattr(result, name)
        assert np.all((values >= 0.0) & (values <= 1.0 + 1e-12)), f"{name} is outside [0, 1]"
    ceiling = 1.0 / (1.0 - config.discount)
    inside = (result.cum_ndcg >= 0.0) & (result.cum_ndcg <= ceiling)
    assert np.all(inside), f"cum_ndcg is outside [0, {ceiling:g}]"


def differences(first: TrialResult, second: TrialResult) -> list[str]:
    """Return the names of the measures that are not the same to the bit, except run times."""
    names = [field.name for field in fields(TrialResult) if "seconds" not in field.name]
    return [name for name in names if not _equal(getattr(first, name), getattr(second, name))]


def _equal(first: object, second: object) -> bool:
    if first is None or second is None:
        return first is second
    return np.asarray(first).tobytes() == np.asarray(second).tobytes()


def _same(what: str, first: TrialResult, second: TrialResult) -> None:
    changed = differences(first, second)
    assert not changed, f"{what}: other bits in {', '.join(changed)}"


def _run(ranker: Ranker, data: Dataset, seed: int = 1, threads: int | None = 1) -> TrialResult:
    return run_trial(data, ranker, CONFIG, seed, trial=0, threads=threads)


class Watched:
    """A ranker that can be watched; what it tells is about the last run.

    Attributes:
        trial: what the ranker knows.
        models: what it learned, one at each update.
        changed: names of what it changed in the trial, and may only read.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.trial: Trial | None = None
        self.models: list[ScoreModel] = []
        self.changed: set[str] = set()
        self._learner: TrialLearner | None = None

    def learner(self, trial: Trial) -> TrialLearner:
        """Return what learns in a trial, and remembers what it learned."""
        self.trial, self.models, self.changed = trial, [], set()
        with self._noticing_changes():
            self._learner = self.ranker.learner(trial)
        return self

    def update(self) -> ScoreModel:
        """Learn."""
        assert self._learner is not None
        with self._noticing_changes():
            self.models.append(self._learner.update())
        return self.models[-1]

    @contextmanager
    def _noticing_changes(self) -> Iterator[None]:
        assert self.trial is not None
        stats, relevance = self.trial.stats.counts, self.trial.relevance
        before = stats.copy(), relevance.copy()
        yield
        if not np.array_equal(stats, before[0]):
            self.changed.add("stats")
        if not np.array_equal(relevance, before[1]):
            self.changed.add("relevance")

    def __getattr__(self, name: str) -> object:
        return getattr(self.ranker, name)


def watched(ranker: Ranker) -> tuple[Ranker, Watched]:
    """Return a ranker to simulate, and the same to look at afterwards."""
    watch = Watched(ranker)
    return cast(Ranker, watch), watch
