"""The exhibits, one file for each table or figure, by name in the order of the report.

>>> [experiment.name for experiment in selected("time,table1")]
['table1', 'time']
"""

from __future__ import annotations

from ebrank.errors import ParameterError
from ebrank.experiments.exhibits import (
    ablation,
    beyond,
    entering,
    opinions,
    shared,
    sweeps,
    table1,
    table2,
    table3,
    time,
    toy,
    waiting,
)
from ebrank.experiments.framework.experiment import Experiment
from ebrank.parameters import near

_IN_ORDER = (
    *(module.EXPERIMENT for module in (table1, table2, table3, time, entering, ablation, toy)),
    waiting.EXPERIMENT,
    *(sweeps.EPSILONS, sweeps.BETA),
    *(beyond.EXPERIMENT, shared.EXPERIMENT, opinions.EXPERIMENT),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _IN_ORDER}
EXTRAS = "extras"
"""Selects everything the paper does not have, except what runs only on request."""
ALL = "all"
"""Selects everything."""


def selected(only: str | None = None) -> tuple[Experiment, ...]:
    """Return the experiments that a text such as `table2,extras` names.

    Without a text, return all except those that run only on request.
    """
    if only is None:
        return tuple(each for each in EXPERIMENTS.values() if not each.on_request)
    names: set[str] = set()
    for name in only.split(","):
        names |= _named(name.strip())
    return tuple(experiment for experiment in EXPERIMENTS.values() if experiment.name in names)


def _named(name: str) -> set[str]:
    if name == ALL:
        return set(EXPERIMENTS)
    if name == EXTRAS:
        return {experiment.name for experiment in EXPERIMENTS.values() if experiment.extra}
    if name in EXPERIMENTS:
        return {name}
    raise ParameterError(
        f"no experiment is called {name!r}{near(name, [*EXPERIMENTS, EXTRAS, ALL])}"
    )
