"""Labels at the ends of lines, moved apart just enough to be read.

>>> spread([0.0, 1.0, 9.0], gap=2.0, low=0.0, high=10.0)
[0.0, 2.0, 9.0]
"""

from __future__ import annotations

from collections.abc import Sequence


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Return places for labels, close to those wanted, `gap` apart, between `low` and `high`.

    Their order is that of the wanted places, ties in the order given. The sum of squared moves is
    the least possible: what must be moved together is put around its mean (isotonic regression).
    Where there is not enough room for all, the gap shrinks.
    """
    count = len(wanted)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = sorted(range(count), key=lambda index: wanted[index])
    level = _ascending([wanted[index] - gap * place for place, index in enumerate(order)])
    places = [0.0] * count
    for place, index in enumerate(order):
        inside = min(max(level[place], low), high - gap * (count - 1))
        places[index] = inside + gap * place
    return places


def _ascending(values: Sequence[float]) -> list[float]:
    """Return the non-decreasing sequence nearest to these values, by pooling what is out of order.

    >>> _ascending([1.0, 3.0, 2.0])
    [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, int]] = []  # sum and size
    for value in values:
        total, size = value, 1
        while pools and pools[-1][0] * size >= total * pools[-1][1]:
            before = pools.pop()
            total, size = total + before[0], size + before[1]
        pools.append((total, size))
    return [total / size for total, size in pools for _ in range(size)]
