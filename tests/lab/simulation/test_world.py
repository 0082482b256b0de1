from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy

from ebrank.evidence import CLICKS, Behaviors
from ebrank.kernels import streams
from ebrank.lab.sessions.session import World
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.play import phase
from ebrank.lab.simulation.world import new_world
from tests.lab.simulation.tiny import tiny
from tests.lab.simulation.users import SHOP

# Draws are seeded: a right simulator passes unless one seed in a million was met.
RARE = 1e-6


def world_of(sizes: list[int], config: SimulationConfig | None = None, trial: int = 0) -> World:
    return new_world(tiny(sizes=sizes), config or SimulationConfig(), streams.trial_key(2, trial))


def test_all_orders_of_entering_are_equally_likely() -> None:
    world = world_of([4] * 6000)
    orders = Counter(tuple(order) for order in (world.arrivals.reshape(-1, 4) % 4).tolist())
    assert len(orders) == 24
    assert scipy.stats.chisquare(list(orders.values())).pvalue > RARE


def test_orders_by_tie_key_are_equally_likely_and_another_draw() -> None:
    world = world_of([3] * 6000)
    ties = (world.by_leaf.reshape(-1, 3) % 3).tolist()
    orders = (world.arrivals.reshape(-1, 3) % 3).tolist()
    pairs = Counter((tuple(tie), tuple(order)) for tie, order in zip(ties, orders, strict=True))
    assert len(pairs) == 36
    assert scipy.stats.chisquare(list(pairs.values())).pvalue > RARE


def test_five_to_ten_candidates_are_there_at_the_start() -> None:
    world = world_of([15] * 6000)
    counts = np.bincount(world.entered)
    assert counts[:5].tolist() == [0] * 5
    assert scipy.stats.chisquare(counts[5:]).pvalue > RARE
    assert len(counts) == 11
    assert np.all(world.entered_at == -1)


@pytest.mark.parametrize(("list_length", "behaviors"), [(5, CLICKS), (1, CLICKS), (14, SHOP)])
def test_what_changes_for_an_item_lies_in_lines_of_its_own(
    list_length: int, behaviors: Behaviors
) -> None:
    """Two threads never write to one line of the cache, and nothing overlaps."""
    config = SimulationConfig(list_length=list_length, behaviors=behaviors)
    world = world_of([5, 6], config)
    columns = (world.weighted_clicks, world.exposure, world.entered_at, world.first_shown)
    lines = [set[int]() for _ in range(11)]
    for number, values in enumerate((*columns, *world.counts.reshape(11, -1).T)):
        values[:] = 100 * number + np.arange(11)
    for array in (*columns, world.counts):
        for row, line in enumerate(lines):
            own = array[row : row + 1]
            first = own.__array_interface__["data"][0]
            last = first + sum((n - 1) * s for n, s in zip(own.shape, own.strides, strict=True))
            line |= {first // 64, (last + own.itemsize - 1) // 64}
    for number, values in enumerate((*columns, *world.counts.reshape(11, -1).T)):
        assert values.tolist() == (100 * number + np.arange(11)).tolist()
    assert sum(map(len, lines)) == len(set().union(*lines))
    assert max(map(len, lines)) == (1 if list_length <= 5 else 2)


def test_queries_are_asked_equally_often() -> None:
    asked, _ = phase(streams.trial_key(1, 0), 0, 50_000, 40)
    assert scipy.stats.chisquare(np.bincount(asked, minlength=40)).pvalue > RARE
