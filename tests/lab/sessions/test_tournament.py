from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from ebrank.kernels.compiled import kernel
from ebrank.lab.sessions import tournament
from tests.kept import kept

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

mark = kept(tournament.mark)


@kernel
def champions(start: Floats, places: Ints, changes: Floats) -> Ints:
    """Return the winner at the start and after each change; the tree begins with what was there."""
    size = tournament.width(len(start))
    marks = np.full(2 * size, tournament.EMPTY)
    winners = np.full(2 * size, 7, np.int32)
    for place in range(len(start)):
        marks[size + place] = tournament.mark(start[place])
    tree = tournament.Tree(marks, winners, size)
    tournament.build(tree)
    found = np.empty(len(places) + 1, np.int64)
    found[0] = winners[1]
    for i in range(len(places)):
        tournament.put(tree, places[i], tournament.mark(changes[i]))
        found[i + 1] = winners[1]
    return found


def first_best(scores: list[float]) -> int:
    return scores.index(max(scores))


FEW_SCORES = st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0, -np.inf, np.inf])


@given(st.data(), st.lists(FEW_SCORES, min_size=1, max_size=37))
def test_the_leftmost_of_the_best_wins_after_every_change(
    data: st.DataObject, scores: list[float]
) -> None:
    change = st.tuples(st.integers(0, len(scores) - 1), FEW_SCORES)
    changes = data.draw(st.lists(change, max_size=30))
    places = np.array([place for place, _ in changes], np.int64)
    found = champions(np.array(scores), places, np.array([score for _, score in changes]))
    expected = [first_best(scores)]
    for place, score in changes:
        scores[place] = score
        expected.append(first_best(scores))
    assert found.tolist() == expected


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_marks_are_ordered_as_scores_are(x: float, y: float) -> None:
    assert (mark(x) < mark(y)) == (x < y)
    assert (mark(x) == mark(y)) == (x == y)
    assert mark(x) > tournament.EMPTY
