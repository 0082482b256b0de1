"""All experiments by name, in the order of the report.

>>> [experiment.name for experiment in selected("time,table1")]
['table1', 'time']
"""

from __future__ import annotations

import difflib

from ebrank.errors import ParameterError
from ebrank.experiments.exhibits import (
    ablation,
    beyond,
    entering,
    table1,
    table2,
    table3,
    time,
    toy,
)
from ebrank.experiments.exhibits.extras import (
    beta,
    calibration,
    default,
    epsilon,
    examination,
    waiting,
)
from ebrank.experiments.framework.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        *(table1, table2, table3, time, entering, ablation, toy),
        *(waiting, epsilon, beta, default, examination, calibration),
        beyond,
    )
}
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
    known = [*EXPERIMENTS, EXTRAS, ALL]
    close = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    raise ParameterError(f"no experiment is called {name!r}{hint} Known: {', '.join(known)}.")
