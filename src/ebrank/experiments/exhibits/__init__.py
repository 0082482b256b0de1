"""The exhibits, one file for each table or figure, by name in the order of the report.

>>> [experiment.name for experiment in selected("time,table1")]
['table1', 'time']
"""

from __future__ import annotations

import difflib

from ebrank.errors import ParameterError
from ebrank.experiments.exhibits import (
    ablation,
    beyond,
    calibration,
    entering,
    sweeps,
    table1,
    table2,
    table3,
    time,
    toy,
    waiting,
)
from ebrank.experiments.framework.experiment import Experiment

_IN_ORDER = (
    *(module.EXPERIMENT for module in (table1, table2, table3, time, entering, ablation, toy)),
    waiting.EXPERIMENT,
    *(sweep.experiment for sweep in (sweeps.EPSILONS, sweeps.BETA)),
    *(sweep.experiment for sweep in (sweeps.DEFAULT, sweeps.EXAMINATION)),
    *(calibration.EXPERIMENT, beyond.EXPERIMENT),
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
    names = [*EXPERIMENTS, EXTRAS, ALL]
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    raise ParameterError(f"no experiment is called {name!r}{hint} Known: {', '.join(names)}.")
