"""Run compiled kernels over blocks of work on several cores, with results that never depend on it.

Kernels release the GIL, so plain threads use all cores. Work is cut into blocks whose borders
depend on the amount of work alone, and results come back in the order of the blocks: any number of
threads gives the same bits.

>>> map_blocks(lambda start, stop: stop - start, total=10, block=4, threads=2)
[4, 4, 2]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def available_threads() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every platform tells
        return os.cpu_count() or 1


def map_blocks(
    work: Callable[[int, int], T], *, total: int, block: int, threads: int | None = None
) -> list[T]:
    """Return `[work(start, stop), ...]` over consecutive blocks of `range(total)`, in order."""
    bounds = [(start, min(start + block, total)) for start in range(0, total, block)]
    threads = min(threads or available_threads(), len(bounds))
    if threads <= 1:
        return [work(start, stop) for start, stop in bounds]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda pair: work(*pair), bounds))
