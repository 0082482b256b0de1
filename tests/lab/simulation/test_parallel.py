"""Trials side by side: the same bits for any number of jobs, and nothing lost when stopped."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.errors import DataError, ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial, simulate
from ebrank.lab.simulation.parallel import Interrupted, run
from ebrank.lab.simulation.result import Result, TrialResult
from ebrank.lab.simulation.storage import StoredTrials

RANKERS = [registry.parse(text) for text in ("bm25", "ebrank", "ebrank:estimator=exposure")]
SHORT = SimulationConfig(sessions=80, updates=4)
PATIENCE = 120.0  # seconds: other processes may be compiling


def bits(results: list[Result]) -> list[list[bytes]]:
    """Return everything that was measured, apart from the time it took."""
    return [
        [
            np.asarray(value).tobytes()
            for trial in result.trials
            for name, value in vars(trial).items()
            if not name.endswith("seconds") and value is not None
        ]
        for result in results
    ]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_jobs_do_not_change_a_bit(dataset: Dataset, jobs: int) -> None:
    expected = [simulate(dataset, ranker, SHORT, seed=3, trials=4) for ranker in RANKERS]
    results = run(dataset, RANKERS, SHORT, 3, trials=4, jobs=jobs)
    assert bits(results) == bits(expected)
    for got, wanted in zip(results, expected, strict=True):
        assert (got.dataset, got.ranker, got.config, got.seed) == (
            *(wanted.dataset, wanted.ranker, wanted.config, wanted.seed),
        )


def test_progress_counts_every_update_once(dataset: Dataset) -> None:
    calls: list[tuple[int, int]] = []
    run(
        dataset,
        RANKERS[:2],
        SHORT,
        trials=3,
        jobs=3,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(done, 24) for done in range(25)]


def test_stored_trials_are_not_run_again(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        ran.append(args[4])
        return run_trial(*args, **kwargs)

    store = StoredTrials(tmp_path, dataset, SHORT, 0)
    run(dataset, RANKERS[:1], SHORT, trials=2, store=store)
    monkeypatch.setattr(parallel, "run_trial", counted)
    longer = run(dataset, RANKERS[:1], SHORT, trials=4, store=store)
    assert ran == [2, 3]
    assert bits(longer) == bits(run(dataset, RANKERS[:1], SHORT, trials=4))


def test_an_interrupt_ends_trials_under_way_and_takes_those_that_end_well(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = threading.Event()

    def staged(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        trial = args[4]
        if trial > 0:
            assert interrupted.wait(PATIENCE)
        while trial == 2:  # would go on for ever
            kwargs["progress"](1, 1000)
            time.sleep(0.01)
        return run_trial(*args)

    class Stopping(StoredTrials):
        """A store that is interrupted once it has a trial."""

        def save(self, ranker: Ranker, trial: int, result: TrialResult) -> None:
            super().save(ranker, trial, result)
            if not interrupted.is_set():
                interrupted.set()
                raise KeyboardInterrupt

    monkeypatch.setattr(parallel, "run_trial", staged)
    store = Stopping(tmp_path, dataset, SHORT, 0)
    with pytest.raises(Interrupted) as caught:
        run(dataset, RANKERS[:1], SHORT, trials=3, jobs=3, store=store)
    (result,) = caught.value.results
    expected = simulate(dataset, RANKERS[0], SHORT, trials=2)
    assert bits([result]) == bits([expected])  # the second ended well, the third did not


def test_a_store_of_other_trials_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    store = StoredTrials(tmp_path, dataset, SHORT, seed=1)
    for config, seed in ((SHORT, 2), (replace(SHORT, discount=0.9), 1)):
        with pytest.raises(ParameterError, match="another dataset, config or seed"):
            run(dataset, RANKERS[:1], config, seed, store=store)


def test_all_rankers_get_their_first_trial_before_any_gets_its_second(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        ran.append(args[4])
        return run_trial(*args, **kwargs)

    monkeypatch.setattr(parallel, "run_trial", counted)
    run(dataset, RANKERS, SHORT, trials=2)
    assert ran == [0] * len(RANKERS) + [1] * len(RANKERS)


def test_trouble_in_a_trial_is_told(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        raise ParameterError("no such luck")

    monkeypatch.setattr(parallel, "run_trial", fail)
    with pytest.raises(ParameterError, match="no such luck"):
        run(dataset, RANKERS[:1], SHORT, trials=4, jobs=2)


def test_bad_arguments_are_refused(dataset: Dataset) -> None:
    for bad in ({"trials": 0}, {"jobs": 0}):
        with pytest.raises(ParameterError, match="1 or more"):
            run(dataset, RANKERS[:1], SHORT, **bad)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="too few"):
        run(dataset, RANKERS[:1], replace(SHORT, sessions=3))
    untested = replace(dataset, query_splits=np.zeros_like(dataset.query_splits))
    with pytest.raises(DataError, match="no test queries"):
        run(untested, RANKERS[:1], SHORT)
