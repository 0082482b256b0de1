"""The three stages that every list passes: its candidates, their scores, and the cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ebrank.service import api
from ebrank.service.core.items import reject_withdrawn
from ebrank.service.core.problems import Problem, not_candidates
from ebrank.service.core.queries import Pace
from ebrank.service.serving.draft import Draft, Stage
from ebrank.service.serving.lists import scored


class Candidates(Stage):
    """Finds the items of the request, in its order; without any, all candidates compete."""

    columns: ClassVar = ("query", "offset")

    def shape(self, draft: Draft) -> None:
        """Find the rows of the items that the request names."""
        if draft.depth > api.MOST_RANKS:
            raise Problem(f"offset and k must not exceed {api.MOST_RANKS} together", "offset")
        if draft.request.items is None:
            return
        names = ids_of(draft.request.items)
        rows = draft.live.rows_of(names)
        if None in rows:  # they were candidates when the request came, but it may have waited since
            pairs = zip(names, rows, strict=True)
            raise not_candidates([name for name, row in pairs if row is None])
        reject_withdrawn(draft.live, names, rows)
        draft.rows = np.array(rows, np.int64)


class Score(Stage):
    """Scores the candidates: by the policy's score, and by relevance alone."""

    columns: ClassVar = ("model",)

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._draws = np.random.PCG64()

    def shape(self, draft: Draft) -> None:
        """Score the candidates."""
        draft.candidates = scored(
            draft.live,
            draft.model,
            draft.rows,
            draws=self._draws,
            lists=self._pace.planned(draft.live, draft.model, draft.entry.time),
            elsewhere=draft.elsewhere,
        )


class Cut(Stage):
    """Cuts the list from the order by score, or by relevance if nothing is to be explored."""

    columns: ClassVar = ("items", "explored", "relevance", "cost")

    def shape(self, draft: Draft) -> None:
        """Cut the list."""
        draft.cut()


def ids_of(items: Sequence[str | api.ItemIn]) -> list[str]:
    """Return the names in a request, each once."""
    return list(dict.fromkeys(item if isinstance(item, str) else item.id for item in items))
