from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from ebrank.evidence import CLICKS, Behaviors, Examination
from ebrank.evidence.valuation import UNIT
from ebrank.kernels import streams
from ebrank.sessions.world import World
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.users import PositionBased
from ebrank.simulation.world import believe, new_world, stats_of
from ebrank.testing import plain
from tests.evidence.logs import formula_curves as curves
from tests.simulation.tiny import tiny
from tests.simulation.users import SHOP

# Draws are seeded: a right simulator passes unless one seed in a million was met.
RARE = 1e-6


def world_of(sizes: list[int], config: SimulationConfig | None = None, trial: int = 0) -> World:
    return new_world(tiny(sizes=sizes), config or SimulationConfig(), streams.trial_key(2, trial))


def believed_curve(world: World) -> list[float]:
    """Return the p of each rank that sessions count exposure by."""
    return [float(world.table[world.counts.shape[2] + slot] * UNIT) for slot in world.slots]


def tie_keys(q: int, n: int) -> list[float]:
    """Return the random numbers that order the equal scores of a query's n items."""
    key = plain.child(plain.child(plain.trial_key(2, 0), plain.TIES), q)
    return [plain.uniform(plain.child(key, place)) for place in range(n)]


def test_every_item_has_a_place_in_the_order_of_entering() -> None:
    world = world_of([1, 2, 30, 8])
    for q, first in enumerate(world.pointers[:-1]):
        rows = np.arange(first, world.pointers[q + 1])
        order = world.arrivals[rows]
        assert sorted(order) == rows.tolist()
        assert world.positions[order].tolist() == list(range(len(rows)))
        leaves = world.by_leaf[rows]
        assert sorted(leaves) == rows.tolist()
        assert np.all(np.diff(np.array(tie_keys(q, len(rows)))[leaves - first]) > 0)
        assert world.leaves[leaves].tolist() == list(range(len(rows)))


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


def test_a_short_query_starts_with_all_it_has() -> None:
    assert world_of([1, 2, 4, 5]).entered.tolist() == [1, 2, 4, 5]
    few = SimulationConfig(initial_candidates=(2, 2))
    assert world_of([1, 2, 4, 5], few).entered.tolist() == [1, 2, 2, 2]


def test_trials_start_differently() -> None:
    one, other = world_of([15] * 9), world_of([15] * 9, trial=1)
    assert one.arrivals.tolist() != other.arrivals.tolist()
    assert one.leaves.tolist() != other.leaves.tolist()
    assert one.entered.tolist() != other.entered.tolist()


def test_relevance_and_curves_are_the_papers() -> None:
    data = tiny(max_label=2)
    config = SimulationConfig(list_length=7)
    world = new_world(data, config, np.uint64(1))
    by_label = {0: 0.1, 1: 0.4, 2: 1.0}
    assert world.relevance == pytest.approx([by_label[int(y)] for y in data.labels])
    curve = [1 / np.log2(k + 1) for k in range(1, 8)]
    assert world.discounts == pytest.approx(curve)
    assert world.user_curve == pytest.approx([*curve[:5], 0.0, 0.0])
    assert believed_curve(world) == pytest.approx([*curve[:5], 0.0, 0.0], abs=2**-31)


def test_rankers_may_believe_in_another_curve() -> None:
    config = SimulationConfig(
        list_length=3,
        users=PositionBased(Examination(curve=(0.9, 0.5))),
        believed=Examination(severity=0.0),
    )
    world = new_world(tiny(), config, np.uint64(1))
    assert world.user_curve.tolist() == [0.9, 0.5, 0.0]
    assert believed_curve(world) == [1.0, 1.0, 1.0]


def test_ideal_dcg_is_that_of_the_best_list() -> None:
    data = tiny(sizes=(3, 2, 1), labels=np.array([0, 2, 1, 0, 0, 2], np.int8))
    world = new_world(data, SimulationConfig(list_length=2), np.uint64(1))
    second = 1 / np.log2(3)
    assert world.ideal == pytest.approx([1.0 + 0.4 * second, 0.1 + 0.1 * second, 1.0])


def test_statistics_share_memory_with_the_world() -> None:
    world = world_of([5, 6])
    world.counts[3, 0, 4] += 2
    world.counts[3, 1, 4] += 1
    stats = stats_of(world, CLICKS)
    assert stats.shown.tolist() == [0, 0, 0, 2, *[0] * 7]
    assert stats.clicks[3] == 1
    stats.record([4, 3], [True, False])
    assert world.counts[3:5, :, 0].tolist() == [[0, 0], [1, 1]]
    assert world.counts[3, :, 1].tolist() == [1, 0]


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


@pytest.mark.parametrize("behaviors", [CLICKS, SHOP], ids=["clicks", "shop"])
@given(seed=st.integers(0, 10**6), before=curves, after=curves)
def test_another_belief_revalues_what_was_counted(
    behaviors: Behaviors, seed: int, before: Examination, after: Examination
) -> None:
    """C and E become those of `BehaviorStats.sums`, to the bit; nothing else changes."""
    data, rng = tiny(sizes=[9, 4]), np.random.default_rng(seed)
    other = Examination(curve=(0.5,))  # where C and E, which nobody has counted, are not yet right
    config = SimulationConfig(list_length=12, believed=other, behaviors=behaviors)
    world = new_world(data, config, np.uint64(seed))
    outcomes = rng.integers(0, 1000, world.counts[:, 1:].shape)
    world.counts[:, 1:] = outcomes
    world.counts[:, 0] = outcomes.sum(axis=1) + rng.integers(0, 10**6, world.counts[:, 0].shape)
    own = stats_of(world, behaviors)
    apart = {"table", "weighted_clicks", "exposure"}
    kept = {n: np.array(v) for n, v in world._asdict().items() if n not in apart}
    for curve in (after, before):
        believe(world, own.valuation(curve))
        sums = own.sums(curve)
        assert (world.weighted_clicks * UNIT).tolist() == sums.weighted_clicks.tolist()
        assert (world.exposure * UNIT).tolist() == sums.exposure.tolist()
        assert world.table.tolist() == own.valuation(curve).table.tolist()
    for name, values in kept.items():
        np.testing.assert_array_equal(getattr(world, name), values)
