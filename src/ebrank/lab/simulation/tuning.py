"""Hyper-parameters are chosen on validation queries, under seeds that no report uses.

`search` tries one parameter after the other, and goes beyond a grid whose end is best. Every point
runs for some trials. The best has the highest mean NDCG, undiscounted, of the lists served to
validation queries in the second half of the run; of equals, the first wins. Tuning never uses test
queries, nor trials that a report could run: reports use seeds from 0 up, tuning for seed s uses the
seed −2 − s, below zero.

>>> [tuning_seed(seed) for seed in (0, 1, 2)]
[-2, -3, -4]
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ebrank.errors import DataError, ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker
from ebrank.lab.simulation.result import Result
from ebrank.parameters import Parameter, typed

Grid: TypeAlias = Mapping[str, Sequence[Any]]
"""The values to try of each parameter."""
RunAll: TypeAlias = Callable[[Sequence[Ranker]], Sequence[Result]]
"""Runs rankers under the tuning seed."""

ROUNDS = 3
"""How often `search` goes through the parameters at most."""
WIDER = 4
"""How many values `search` adds to a parameter's grid at most."""


@dataclass(frozen=True)
class Point:
    """Values that were tried, the ranker's text, and its NDCG on validation queries by trial."""

    values: dict[str, Any]
    ranker: str
    validation_ndcg: tuple[float, ...]

    @property
    def score(self) -> float:
        """What is maximized."""
        return float(np.mean(self.validation_ndcg))


@dataclass(frozen=True)
class GridPoint:
    """A value of one parameter, and the NDCG on validation queries, trial by trial."""

    value: float
    trials: tuple[float, ...]


@dataclass(frozen=True)
class TuningRecord:
    """How a ranker got the value of a parameter.

    Attributes:
        label: what readers call the ranker.
        entering_probability: η, for which it was tuned.
        value: the choice.
        ranker: text of the ranker with this value.
        seed: of the tuning trials, which no report uses; None where the value was given.
        at_the_edge: whether a wider grid may do better.
        grid: what was tried with all other parameters at their best; () where it was given.
        parameter: the tuned parameter.
        world: how the config differed from the usual one, apart from η.
        fold: on whose validation queries; None where folds are not pooled, or the value was given.
    """

    label: str
    entering_probability: float
    value: float
    ranker: str
    seed: int | None = None
    at_the_edge: bool = False
    grid: tuple[GridPoint, ...] = ()
    parameter: str = "epsilon"
    world: str = ""
    fold: int | None = None


@dataclass(frozen=True)
class Tuning:
    """All points that were tried, in their order; the best; and which values end their grids."""

    points: tuple[Point, ...]
    best: Point
    at_the_edge: tuple[str, ...]
    seed: int

    def records(self, label: str, eta: float, world: str = "") -> Iterator[TuningRecord]:
        """Yield a record of each numeric parameter; a choice of words shows in the text."""
        for name, value in self.best.values.items():
            if not isinstance(value, int | float):
                continue
            others = {other: own for other, own in self.best.values.items() if other != name}
            points = [
                GridPoint(float(point.values[name]), point.validation_ndcg)
                for point in self.points
                if others.items() <= point.values.items() and point.values[name] is not None
            ]
            yield TuningRecord(
                *(label, eta, float(value), self.best.ranker, self.seed),
                at_the_edge=name in self.at_the_edge,
                grid=tuple(sorted(points, key=lambda point: point.value)),
                parameter=name,
                world=world,
            )


def check_validation(dataset: Dataset) -> None:
    """Raise if a dataset has no queries to tune on."""
    if len(dataset.queries_in("vali")) == 0:
        raise DataError(f"{dataset.name!r} has no validation queries to tune on")


def search(ranker: Ranker, grid: Grid, run: RunAll, seed: int = 0, *, wider: int = WIDER) -> Tuning:
    """Return the points that a coordinate search tries; `seed` is that of the report to tune for.

    It chooses one parameter after the other, with the others at their best so far, until nothing
    changes. Where the end of a grid is best, further values are tried, each at least twice or half
    the one before. It begins with the best of a coarse grid, every other value of each parameter:
    what is best of one may depend on another, as ε does on β, and then single steps lead nowhere.
    So two parameters with six values each take some 20 points instead of 36, and more where the
    grids turn out to be too narrow.
    """
    declared = {parameter.name: parameter for parameter in ranker.parameters()}
    values = {name: list(own) for name, own in grid.items()}
    tried: dict[tuple[Any, ...], Point] = {}

    def try_all(combinations: Sequence[dict[str, Any]]) -> None:
        new = [own for own in combinations if tuple(own.values()) not in tried]
        rankers = [ranker.with_parameters(**own) for own in new]
        for own, tuned, result in zip(new, rankers, run(rankers) if new else (), strict=True):
            tried[tuple(own.values())] = _point(own, tuned, result)

    def best_of(combinations: Sequence[dict[str, Any]]) -> dict[str, Any]:
        try_all(combinations)
        return max(combinations, key=lambda own: tried[tuple(own.values())].score)

    coarse = {name: own[1::2] or own for name, own in values.items()} if len(grid) > 1 else values
    best = best_of(
        [dict(zip(coarse, own, strict=True)) for own in itertools.product(*coarse.values())]
    )
    for _ in range(ROUNDS):
        before = best
        for name in grid:
            while True:
                best = best_of([best | {name: own} for own in values[name]])
                value = _beyond(declared[name], values[name], best[name])
                if value is None or len(values[name]) == len(grid[name]) + wider:
                    break
                values[name].append(value)
        if best == before or len(grid) == 1:
            break
    points = tuple(tried.values())
    chosen = max(points, key=lambda point: point.score)
    return Tuning(points, chosen, tuple(_at_the_edge(points, chosen, declared)), tuning_seed(seed))


def _beyond(parameter: Parameter, values: Sequence[Any], best: Any) -> Any:  # noqa: ANN401
    """Return the next value to try if the best ends the grid; None if there is none.

    >>> from ebrank.lab.rankers import registry
    >>> epsilon, *_ = registry.parse("ebrank").parameters()
    >>> [_beyond(epsilon, (0.0, 5.0, 15.0), best) for best in (0.0, 5.0, 15.0)]
    [None, None, 45.0]
    """
    numbers = sorted(value for value in values if value is not None)
    if parameter.kind not in (int, float) or len(numbers) < 2 or best is None or best <= 0:
        return None
    if best == numbers[-1]:
        value = best * (max(best / numbers[-2], 2.0) if numbers[-2] > 0 else 2.0)
    elif best == numbers[0]:
        value = best / max(numbers[1] / best, 2.0)
    else:
        return None
    value = parameter.kind(float(f"{value:.3g}"))
    low, high = parameter.at_least, parameter.at_most
    inside = (low is None or value >= low) and (high is None or value <= high)
    return value if inside and value not in numbers else None


def _point(values: dict[str, Any], ranker: Ranker, result: Result) -> Point:
    ndcg = tuple(trial.validation_ndcg for trial in result.trials)
    if np.isnan(ndcg).any():
        raise ParameterError(
            "no validation query was served in the second half of the run; set more sessions"
        )
    settings = [
        f"{parameter.name}={typed(ranker.value(parameter.name))}"
        for parameter in ranker.parameters()
        if parameter.name in values or ranker.value(parameter.name) != parameter.default
    ]
    return Point(values, f"{ranker.called}:{','.join(settings)}", ndcg)


def _at_the_edge(
    points: Sequence[Point], best: Point, declared: Mapping[str, Parameter]
) -> Iterator[str]:
    """Yield parameters whose best value ends the grid, but not the range of the parameter."""
    for name, value in best.values.items():
        parameter = declared[name]
        tried = {point.values[name] for point in points} - {None}
        if parameter.kind in (int, float) and len(tried) > 1:
            ends = {min(tried), max(tried)} - {parameter.at_least, parameter.at_most}
            if value in ends:
                yield name


def tuning_seed(seed: int) -> int:
    """Return the seed to tune with for a report with this seed: never one of a report.

    −1 is left out, for its key is the root of the keys of all seeds.
    """
    if seed < 0:
        raise ParameterError(f"seed must be 0 or more, not {seed}: tuning uses negative seeds")
    return -2 - seed


def read_grid(ranker: Ranker, names: Sequence[str], texts: Sequence[str]) -> Grid:
    """Return the grid that texts such as `0,1,5` give for the named parameters.

    Without texts, take the parameters' own grids; without names, all parameters that have one.

    >>> from ebrank.lab.rankers import registry
    >>> read_grid(registry.parse("ebrank"), ["epsilon"], ["0,1,5"])
    {'epsilon': (0.0, 1.0, 5.0)}
    """
    declared = {parameter.name: parameter for parameter in ranker.parameters()}
    for unknown in [name for name in names if name not in declared]:
        has = f"it has {', '.join(declared)}" if declared else "it has none"
        raise ParameterError(f"{ranker.name} has no parameter {unknown!r}; {has}")
    if len(set(names)) < len(names):
        raise ParameterError("a parameter is given twice; give each --param once")
    if texts and len(texts) != len(names):
        raise ParameterError(
            f"{len(names)} parameters but {len(texts)} grids: give one --grid per --param"
        )
    chosen = [declared[name] for name in names] or [p for p in declared.values() if p.grid]
    if not chosen:
        raise ParameterError(f"{ranker.name} has nothing to tune")
    if not texts:
        return {parameter.name: _own_grid(parameter) for parameter in chosen}
    return {
        parameter.name: _read_values(parameter, text, ranker.name)
        for parameter, text in zip(chosen, texts, strict=True)
    }


def _own_grid(parameter: Parameter) -> tuple[Any, ...]:
    if isinstance(parameter.default, bool):
        return (False, True)
    values = parameter.grid or parameter.choices
    if not values:
        raise ParameterError(f"{parameter.name} has no default grid; give one with --grid")
    return values


def _read_values(parameter: Parameter, text: str, owner: str) -> tuple[Any, ...]:
    """Return the values of a grid, each once."""
    values = tuple(dict.fromkeys(parameter.read(part.strip()) for part in text.split(",")))
    for value in values:
        parameter.check(value, owner)
    return values
