"""Candidates as responses describe them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import UNSET, Struct

from ebrank.evidence import BehaviorStats, Examination
from ebrank.model.policy.ranking import Candidates, Ranking
from ebrank.service.core.live import LiveQuery
from ebrank.service.serving.lists import ScoredCandidates
from ebrank.typing import Floats, Ints

T = TypeVar("T", bound=Struct)


_COLUMNS: Mapping[str, Callable[[Candidates, LiveQuery, Ints], Sequence[Any]]] = {
    "query": lambda _, live, rows: [live.state.query] * len(rows),
    "id": lambda _, live, rows: live.ids.at(rows.tolist()),
    "item": lambda _, live, rows: live.ids.at(rows.tolist()),
    "entered": lambda _, live, rows: live.state.entered[rows].tolist(),
    "first_shown": lambda _, live, rows: or_none(live.state.first_shown[rows]),
    "shown": lambda details, *_: details.sums.shown.astype(np.int64).tolist(),
    "clicks": lambda details, *_: examined_clicks(details.behavior, details.examination).tolist(),
    "exposure": lambda details, *_: details.sums.exposure.tolist(),
    "weighted_clicks": lambda details, *_: details.sums.weighted_clicks.tolist(),
    "relevance": lambda details, *_: details.relevance.tolist(),
    "prior": lambda details, *_: (details.prior_mean - details.prior_change).tolist(),
    "elsewhere": lambda details, *_: details.prior_change.tolist(),
    "other_queries": lambda details, *_: details.elsewhere.queries.tolist(),
    "alpha": lambda details, *_: details.prior_beta[0].tolist(),
    "beta": lambda details, *_: details.prior_beta[1].tolist(),
    "interval": lambda details, *_: [tuple(ends) for ends in _intervals(details).tolist()],
    "bonus": lambda details, *_: details.bonus.tolist(),
    "score": lambda details, *_: details.scores.tolist(),
}
"""What is known about candidates, by its name in responses; computed if a response has it."""
_IF_SHARED = ("elsewhere", "other_queries")
"""What responses have only if queries share evidence."""


def described(
    kind: type[T],
    live: LiveQuery,
    candidates: ScoredCandidates,
    places: Ints,
    **columns: Sequence[Any],
) -> list[T]:
    """Return candidates as structs of a kind; `_COLUMNS` has the fields that are not given."""
    if not len(places):
        return []
    rows, details = candidates.rows[places], candidates.details.rows(places)
    if details.elsewhere is None:
        columns |= dict.fromkeys(_IF_SHARED, [UNSET] * len(rows))
    values = [
        columns[name] if name in columns else _COLUMNS[name](details, live, rows)
        for name in kind.__struct_fields__
    ]
    return [kind(*row) for row in zip(*values, strict=True)]


def _intervals(details: Candidates) -> Floats:
    return Ranking(np.arange(len(details.scores)), details).interval


def or_none(times: Floats) -> list[float | None]:
    """Return times as in a response: None if there is none yet."""
    return [None if math.isnan(time) else time for time in times.tolist()]


def examined_clicks(behavior: BehaviorStats, examination: Examination) -> Ints:
    """Return how many impressions of each item led to a behavior, where users look."""
    examined = behavior.valuation(examination).table[: behavior.slots] > 0
    total: Ints = behavior.counts[:, 1:, examined].sum(axis=(1, 2), dtype=np.int64)
    return total
