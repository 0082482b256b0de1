"""The exhibits, one file for each table or figure, by name in the order of the report.

>>> [exhibit.name for exhibit in selected("time,table1")]
['table1', 'time']
"""

from __future__ import annotations

from ebrank.errors import ParameterError
from ebrank.paper.exhibits import (
    ablation,
    beyond,
    entering,
    opinions,
    shared,
    table1,
    table2,
    table3,
    time,
    toy,
    waiting,
)
from ebrank.paper.framework.exhibit import Exhibit
from ebrank.parameters import near

_IN_ORDER = (
    *(table1, table2, table3, time, entering, ablation, toy),
    *(waiting, beyond, shared, opinions),
)
EXHIBITS: dict[str, Exhibit] = {each.EXHIBIT.name: each.EXHIBIT for each in _IN_ORDER}
ALL = "all"
"""Selects everything."""


def selected(only: str | None = None) -> tuple[Exhibit, ...]:
    """Return the exhibits that a text such as `table2,waiting` names.

    Without a text, return all except those that run only on request.
    """
    if only is None:
        return tuple(each for each in EXHIBITS.values() if not each.on_request)
    names, known = [name.strip() for name in only.split(",")], [*EXHIBITS, ALL]
    wrong = next((name for name in names if name not in known), None)
    if wrong is not None:
        raise ParameterError(f"no exhibit is called {wrong!r}{near(wrong, known)}")
    return tuple(each for each in EXHIBITS.values() if {each.name, ALL} & {*names})
