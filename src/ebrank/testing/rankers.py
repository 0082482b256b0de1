"""What every ranker must do, whatever it ranks by."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.evidence import Examination
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker, Setting
from ebrank.rankers.model import ScoreModel
from ebrank.simulation import parallel
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial, simulate
from ebrank.simulation.result import TrialResult
from ebrank.simulation.users import PositionBased
from ebrank.testing.datasets import tiny
from ebrank.testing.watching import watched

CONFIG = SimulationConfig(updates=3, sessions=150, warmup_sessions=3)


def check_ranker(
    ranker: Ranker, dataset: Dataset | None = None, *, learns_from_test: bool = False
) -> None:
    """Raise where a ranker breaks a rule that all rankers keep.

    Args:
        ranker: the ranker, with its parameters.
        dataset: what it can rank, if it cannot rank anything; by default it is given datasets of
            a hundred rows, odd ones among them.
        learns_from_test: whether it may learn from sessions of test queries, which makes what is
            measured on them mean something else.
    """
    data = tiny() if dataset is None else dataset
    check_declaration(ranker)
    check_repeats(ranker, data)
    check_threads(ranker, tiny(sizes=[3 + i % 8 for i in range(150)]) if dataset is None else data)
    check_trials(ranker, data)
    check_same_users(ranker, data)
    check_reads_only(ranker, data)
    if not learns_from_test:
        check_test_labels_teach_nothing(ranker, data)
    check_odd_experiments(ranker, data)
    if dataset is None:
        check_odd_data(ranker)


# --- declarations --------------------------------------------------------------------------------


def check_declaration(ranker: Ranker) -> None:
    """It says what it is, its text reads back, and copies are equal to it."""
    kind = type(ranker)
    assert kind.name == kind.name.lower(), f"{kind.name!r}: names are lower case"
    sentence = kind.help[:1].isupper() and kind.help.endswith(".")
    assert sentence, f"help must be a sentence, not {kind.help!r}"
    known = get_args(Setting)
    assert kind.settings, "settings are missing"
    assert set(kind.settings) <= set(known), f"settings are {known}, not {kind.settings}"
    assert ranker.setting in kind.settings, f"its setting {ranker.setting!r} is not one it declares"
    for parameter in ranker.parameters():
        assert parameter.help, f"the parameter {parameter.name} has no help"
        if parameter.default is not None:
            parameter.check(parameter.default, kind.name)
        for value in parameter.grid:
            parameter.check(value, kind.name)
            changed = ranker.with_parameters(**{parameter.name: value})
            assert changed.value(parameter.name) == value, f"{parameter.name} cannot be set"
    text = str(ranker)
    again = registry.parse(text)
    assert again == ranker, f"its text {text!r} reads back as another ranker, {again!s}"
    assert hash(again) == hash(ranker), "equal rankers have different hashes"
    assert str(again) == text, f"its text changes when read back: {text!r}, then {str(again)!r}"
    assert pickle.loads(pickle.dumps(ranker)) == ranker, "a pickled copy is another ranker"


# --- a run is a pure function of dataset, ranker, config and seed --------------------------------


def check_repeats(ranker: Ranker, data: Dataset) -> None:
    """The same seed gives the same bits, another seed others, and all measures are in range."""
    first = _run(ranker, data)
    check_measures(first)
    check_same(first, _run(ranker, data), "a run with the same seed is another")
    assert "test_ndcg" in differences(first, _run(ranker, data, seed=2)), (
        "a run with another seed is the same"
    )


def check_threads(ranker: Ranker, data: Dataset) -> None:
    """The number of threads, and of trials that run at a time, changes nothing."""
    first = _run(ranker, data, threads=1)
    for threads in (2, 5):
        again = _run(ranker, data, threads=threads)
        check_same(first, again, f"a run on {threads} threads is another than on one")
    alone, abreast = (
        parallel.run(data, [ranker], CONFIG, seed=1, trials=2, jobs=jobs)[0] for jobs in (1, 2)
    )
    for mine, other in zip(alone.trials, abreast.trials, strict=True):
        check_same(mine, other, "trials that run side by side disturb each other")


def check_trials(ranker: Ranker, data: Dataset) -> None:
    """A trial does not depend on those before it."""
    result = simulate(data, ranker, CONFIG, seed=1, trials=3)
    assert "test_ndcg" in differences(*result.trials[:2]), "two trials are the same"
    alone = run_trial(data, ranker, CONFIG, seed=1, trial=2)
    check_same(result.trials[2], alone, "the third trial depends on those before it")
    copy = pickle.loads(pickle.dumps(result))
    check_same(result.trials[0], copy.trials[0], "a pickled result is another")


def check_same_users(ranker: Ranker, data: Dataset) -> None:
    """All rankers meet the same users.

    Where all items are shown and all are looked at, order is nothing and clicks are the same.
    """
    most = int(data.candidates.max())
    everywhere = PositionBased(Examination(severity=0.0))
    config = replace(CONFIG, list_length=most, initial_candidates=(most, most), users=everywhere)
    clicks = []
    for each in (registry.parse("bm25"), ranker):
        candidate, watch = watched(each)
        run_trial(data, candidate, config, seed=7, trial=1)
        assert watch.trial is not None
        clicks.append(watch.trial.stats.clicks)
    assert np.array_equal(clicks[0], clicks[1]), "it meets other users than BM25 does"
    assert clicks[0].sum() > 0, "nobody clicked: this shows nothing"


# --- the caller's data ---------------------------------------------------------------------------


def check_reads_only(ranker: Ranker, data: Dataset) -> None:
    """The dataset is only read, and may be mapped from disk."""
    arrays = {
        field.name: value
        for field in fields(Dataset)
        if isinstance(value := getattr(data, field.name), np.ndarray)
    }
    before = {name: values.copy() for name, values in arrays.items()}
    writable = {name: values.flags.writeable for name, values in arrays.items()}
    result = _run(ranker, data)
    for name, values in arrays.items():
        assert np.array_equal(values, before[name]), f"it changes the dataset's {name}"
        assert values.flags.writeable == writable[name], f"it locks the dataset's {name}"
    with tempfile.TemporaryDirectory() as folder:
        mapped = {}
        for name, values in before.items():
            np.save(Path(folder) / f"{name}.npy", values)
            mapped[name] = np.load(Path(folder) / f"{name}.npy", mmap_mode="r")
        again = _run(ranker, replace(data, **mapped))
    check_same(result, again, "a run on the same data, mapped from disk, is another")


def check_test_labels_teach_nothing(ranker: Ranker, data: Dataset) -> None:
    """Other labels of test queries, hence other clicks there, leave what it learned as it was.

    Compared are, at every update, the weights, the parameters of its formulas, and the two numbers
    of each item of the other queries.
    """
    on_test = np.repeat(data.query_splits == 2, data.candidates)
    flipped = np.where(on_test, data.max_label - data.labels, data.labels).astype(np.int8)
    learned = []
    for labels in (data.labels, flipped):
        candidate, watch = watched(ranker)
        run_trial(replace(data, labels=labels), candidate, CONFIG, seed=3, trial=0, threads=1)
        learned.append([_learned(model, ~on_test) for model in watch.models])
    for update, (mine, other) in enumerate(zip(*learned, strict=True)):
        for name, values in mine.items():
            assert np.array_equal(values, other[name]), (
                f"{name} at update {update} depends on the labels of test queries"
            )


def _learned(model: ScoreModel, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return what a model learned, that of some rows where it is by row."""
    b = np.broadcast_to(model.b, model.a.shape)
    parts = {
        "a": model.a[rows].copy(),
        "b": b[rows].copy(),
        "serve": model.serve.parameters,
        "offline": model.offline.parameters,
    }
    return parts if model.weights is None else parts | {"weights": model.weights.copy()}


def check_odd_experiments(ranker: Ranker, data: Dataset) -> None:
    """Experiments at the edge of what is possible give results all the same."""
    nearest = PositionBased(Examination(cutoff=1))
    for config in (
        SimulationConfig(updates=1, sessions=60, warmup_sessions=0),
        SimulationConfig(updates=60, sessions=60, list_length=1, cutoffs=(1,)),
        SimulationConfig(updates=2, sessions=60, list_length=30, initial_candidates=(1, 1)),
        SimulationConfig(updates=2, sessions=60, users=nearest),
    ):
        result = run_trial(data, ranker, config, seed=1, trial=0)
        check_measures(result, config)
        assert len(result.sessions) == config.updates, "an update is missing"
        assert result.sessions[-1] == 60, "a session is missing"


def check_odd_data(ranker: Ranker) -> None:
    """Odd data do no harm: one item per query, features that are equal or extreme, and so on."""
    for name, data in odd_datasets().items():
        try:
            result = _run(ranker, data)
            check_measures(result)
        except Exception as problem:
            problem.add_note(f"on a dataset with {name}")
            raise
        if name == "one item per query":
            assert np.all(result.test_ndcg == 1.0), "the only list there is has an NDCG below 1"
        if name in ("nothing relevant", "all relevant"):
            full = data.candidates[result.test_queries] <= CONFIG.list_length
            assert np.allclose(result.test_ndcg[full], 1.0), f"NDCG below 1 with {name}"


@cache
def odd_datasets() -> dict[str, Dataset]:
    """Return datasets as nobody should have them, by what is odd about them."""
    data = tiny()
    rows, rng = data.n_rows, np.random.default_rng(1)
    odd = np.array([3e38, -3e38, 1e-45, -1e-40, 0.0, -0.0, 1.0, 1.17549435e-38], np.float32)
    nothing, same = np.zeros(rows), np.full((rows, 3), 0.5, np.float32)
    return {
        "one item per query": tiny(sizes=[1] * 60),
        "a query per split": tiny(sizes=(8, 9, 7)),
        "splits end to end": tiny(interleaved=False),
        "one feature": tiny(n_features=1),
        "more features than rows": tiny(sizes=(6, 7, 8), n_features=40),
        "equal features": tiny(features=same, baseline=nothing.astype(np.float32)),
        "zero features": tiny(features=np.zeros((rows, 3), np.float32)),
        "collinear features": tiny(features=np.repeat(data.features[:, :1], 3, axis=1)),
        "extreme features": tiny(features=rng.choice(odd, (rows, 3))),
        "large features": tiny(features=data.features * np.float32(1e30)),
        "extreme BM25": tiny(baseline=rng.choice(odd, rows)),
        "nothing relevant": tiny(labels=nothing.astype(np.int8)),
        "all relevant": tiny(labels=np.full(rows, 2, np.int8)),
        "many labels": tiny(max_label=4),
    }


# --- results -------------------------------------------------------------------------------------


def check_measures(result: TrialResult, config: SimulationConfig = CONFIG) -> None:
    """All that a trial measured is finite and in range."""
    for field in fields(TrialResult):
        value = getattr(result, field.name)
        assert value is None or np.all(np.isfinite(value)), f"{field.name} is not finite: {value}"
    for name in ("cold_ndcg", "warm_ndcg", "cold_by_query", "warm_by_query", "test_ndcg"):
        values = getattr(result, name)
        assert np.all((values >= 0.0) & (values <= 1.0 + 1e-12)), f"{name} is out of range"
    ceiling = 1.0 / (1.0 - config.discount)
    assert np.all((result.cum_ndcg >= 0.0) & (result.cum_ndcg <= ceiling)), "cum_ndcg out of range"
    for name in ("exposure_by_age", "clicks_by_age"):
        assert np.isclose(getattr(result, name).sum(), 1.0), f"the shares {name} do not add up to 1"


def check_same(first: TrialResult, other: TrialResult, problem: str) -> None:
    """Two results agree in every bit, run time aside."""
    different = differences(first, other)
    assert not different, f"{problem}: {', '.join(different)}"


def differences(first: TrialResult, other: TrialResult) -> list[str]:
    """Return the names of the measures that are not the same bit for bit, run time aside."""
    names = [field.name for field in fields(TrialResult) if "seconds" not in field.name]
    return [name for name in names if not _same(getattr(first, name), getattr(other, name))]


def _same(value: object, other: object) -> bool:
    if value is None or other is None:
        return value is other
    return np.asarray(value).tobytes() == np.asarray(other).tobytes()


def _run(ranker: Ranker, data: Dataset, *, seed: int = 1, threads: int | None = 1) -> TrialResult:
    return run_trial(data, ranker, CONFIG, seed, trial=0, threads=threads)


CHECKS: tuple[Callable[[Ranker, Dataset], None], ...] = (
    check_repeats,
    check_trials,
    check_same_users,
    check_reads_only,
    check_test_labels_teach_nothing,
    check_odd_experiments,
)
"""What takes a ranker and a dataset."""
