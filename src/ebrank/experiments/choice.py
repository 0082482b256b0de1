"""The ε of UCBRank and EBRank: chosen on validation queries, or given.

PROTOCOL: the best has the highest mean NDCG of the lists served to validation queries in the second
half of the run, over five tuning seeds that no report uses; see `simulation.tuning`. Each entering
probability η has a choice of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.experiments.lineup import ENTRANTS, entrant
from ebrank.experiments.run import Experiment, GridPoint, TuningRecord
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker
from ebrank.simulation import tuning
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import Progress
from ebrank.simulation.storage import Store

TRIALS = 5
"""Tuning trials; fewer if the report has fewer."""
PARAMETER = "epsilon"

Need: TypeAlias = tuple[str, float]
"""An entrant's key, and the entering probability η it needs its ε for."""


def needs(experiments: Iterable[Experiment], config: SimulationConfig) -> list[Need]:
    """Return whose ε some experiments need, each once."""
    return list(dict.fromkeys(need for one in experiments for need in one.to_tune(config)))


def grid_of(key: str) -> tuple[float, ...]:
    """Return the values of ε that are tried.

    >>> grid_of("ebrank")[:3]
    (0.0, 5.0, 10.0)
    """
    return tuple(tuning.read_grid(registry.parse(key), [PARAMETER], [])[PARAMETER])


def read_given(texts: Sequence[str]) -> dict[str, Ranker]:
    """Return the rankers that were given instead of tuned, by the key of whose place they take.

    >>> list(read_given(["ebrank:epsilon=30"]))
    ['ebrank']
    """
    given: dict[str, Ranker] = {}
    tuned = [one.key for one in ENTRANTS if one.tuned]
    for text in texts:
        ranker = registry.parse(text)
        key = next((key for key in tuned if _is(key, ranker)), None)
        if key is None or f"{PARAMETER}=" not in text:
            places = ", ".join(f"{key}{',' if ':' in key else ':'}epsilon=…" for key in tuned)
            raise ParameterError(f"{text} takes the place of no tuned ranker; those are {places}")
        if key in given:
            raise ParameterError(f"{key} is given twice")
        given[key] = ranker
    return given


def _is(key: str, ranker: Ranker) -> bool:
    """Return whether a ranker is an entrant but for its ε."""
    untuned = registry.parse(key)
    return type(ranker) is type(untuned) and untuned == replace(
        ranker,  # type: ignore[type-var]
        epsilon=untuned.epsilon,  # type: ignore[attr-defined]
    )


def take(need: Need, given: Mapping[str, Ranker]) -> tuple[Ranker, TuningRecord]:
    """Return a ranker that was given, and the record that says so."""
    key, eta = need
    ranker = given[key]
    epsilon = float(ranker.epsilon)  # type: ignore[attr-defined]
    return ranker, TuningRecord(key, entrant(key).label, eta, epsilon, _text(key, epsilon))


def tune(
    need: Need,
    dataset: Dataset,
    config: SimulationConfig,
    seed: int,
    *,
    trials: int,
    jobs: int,
    folder: Path,
    progress: Progress | None = None,
) -> tuple[Ranker, TuningRecord]:
    """Return an entrant with the ε that validation queries prefer, and how it was chosen."""
    key, eta = need
    config = replace(config, entering_probability=eta)
    found = tuning.tune(
        dataset,
        registry.parse(key),
        {PARAMETER: grid_of(key)},
        config,
        seed,
        trials=tuning_trials(trials),
        jobs=jobs,
        store=Store(folder, dataset, config, tuning.tuning_seed(seed)),
        progress=progress,
    )
    epsilon = float(found.best.values[PARAMETER])
    points = tuple(
        GridPoint(float(point.values[PARAMETER]), tuple(point.validation_ndcg.tolist()))
        for point in found.points
    )
    label, edge = entrant(key).label, PARAMETER in found.at_the_edge
    record = TuningRecord(key, label, eta, epsilon, found.best.text, found.seed, edge, points)
    return found.best.ranker, record


def tuning_trials(trials: int) -> int:
    """Return how many trials each ε is tried for, in a report of so many."""
    return min(trials, TRIALS)


def _text(key: str, epsilon: float) -> str:
    name, _, rest = key.partition(":")
    return f"{name}:{PARAMETER}={registry.typed(epsilon)}" + (f",{rest}" if rest else "")
