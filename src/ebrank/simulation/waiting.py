"""How long new relevant items wait to be shown, and to be ranked among the best.

Only test queries' items with the dataset's highest grade are watched, and of these the ones that
enter while a ranker serves. All times are ages: sessions of the item's query since the one in which
it entered, which counts 0. An item that has not been shown, or not reached the top, when the run
ends has waited at least until then; `ebrank.evaluation.survival` uses both.

The best items are checked only at model updates, without exploration. So `wait_top` says when a
ranker's own estimate was first seen to favor an item, not when it began to: even BM25 and Oracle,
whose scores never change, seem to wait for the next update. Checking the served lists instead would
add little, since every item in them is shown.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ebrank.data.dataset import Dataset
from ebrank.sessions.world import World
from ebrank.typing import Bools, Ints

NEVER = -1


class Waiting:
    """The watched items, and when each was first among the best of its query."""

    def __init__(self, dataset: Dataset, world: World) -> None:
        initial = world.positions < np.repeat(world.entered, dataset.candidates)
        on_test = np.repeat(dataset.query_splits == 2, dataset.candidates)
        awaited = on_test & (dataset.labels == dataset.max_label) & ~initial
        self._rows: Ints = np.flatnonzero(awaited)
        self._query_of = dataset.query_of_rows
        self._awaited: Bools = awaited
        self._top_at: Ints = np.full(dataset.n_rows, NEVER)

    def note_top(self, world: World, lists: Ints) -> None:
        """Record the items in the lists that the model, just updated, would show.

        `lists` holds rows of the dataset, −1 where there is none.
        """
        arrived = lists[(lists >= 0) & self._awaited[lists]]
        self._top_at[arrived] = world.sessions_done[self._query_of[arrived]] - 1
        self._awaited[arrived] = False

    def waits(self, world: World) -> dict[str, Ints]:
        """Return how long the items that have entered have waited, as fields of `TrialResult`."""
        rows = self._rows[world.entered_at[self._rows] >= 0]
        entered = world.entered_at[rows].astype(np.int64)
        last_session = world.sessions_done[self._query_of[rows]] - 1
        return {
            "wait_shown": _ages(world.first_shown[rows], entered),
            "wait_top": _ages(self._top_at[rows], entered),
            "watched": last_session - entered,
        }


def _ages(sessions: npt.NDArray[np.integer], entered: Ints) -> Ints:
    """Return sessions as ages of items; −1 for what never happened stays."""
    return np.where(sessions == NEVER, NEVER, sessions - entered)
