"""Run compiled kernels over blocks of work on several cores, with the same results on any number.

Kernels release the GIL, so plain threads use all cores. Work is split into blocks whose borders
depend only on the amount of work, and results come back in the order of the blocks: any number of
threads gives the same bits.

>>> map_blocks(lambda start, stop: stop - start, total=10, block=4, threads=2)
[4, 4, 2]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from ebrank.typing import Floats

T = TypeVar("T")


def available_threads() -> int:
    """Return the number of cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every platform
        return os.cpu_count() or 1


def map_blocks(
    work: Callable[[int, int], T], *, total: int, block: int, threads: int | None = None
) -> list[T]:
    """Return `[work(start, stop), ...]` over consecutive blocks of `range(total)`, in order."""
    starts = range(0, total, block)
    threads = min(threads or available_threads(), len(starts))
    if threads <= 1:
        return [work(start, min(start + block, total)) for start in starts]
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}
    waiting = iter(starts)  # shared: a free thread takes the next block

    def take_blocks() -> None:
        for start in waiting:
            try:
                results[start] = work(start, min(start + block, total))
            except BaseException as error:
                errors[start] = error
            if errors:
                return

    helpers = [_pool().submit(take_blocks) for _ in range(threads - 1)]
    take_blocks()
    for helper in helpers:
        if not helper.cancel():  # a helper that has not started is no longer needed
            helper.result()
    if errors:  # blocks are taken in order, so the first of all errors is among them
        raise errors[min(errors)]
    return [results[start] for start in starts]


def sum_blocks(
    work: Callable[[int, int], Floats],
    start: Floats,
    *,
    total: int,
    block: int,
    threads: int | None,
) -> Floats:
    """Return `start` plus the results of `map_blocks`, added in order: the same bits every time."""
    for part in map_blocks(work, total=total, block=block, threads=threads):
        start = start + part
    return start


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the shared thread pool, with one thread per core.

    Starting new ones for every pass would cost as much as a short pass itself.
    """
    return ThreadPoolExecutor(available_threads())


class _OneBlasThread:
    """Limits BLAS and LAPACK to one thread until the last caller is done.

    OpenBLAS wakes a thread per core even for matrices of a few dozen rows, and its threads busily
    wait for each other. On a machine with other load, an optimizer that solves such a system in
    each iteration takes twenty times as long. The limit applies to the whole process, so callers
    that overlap share it, whatever their threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._callers = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._callers == 0:
                _take_control()
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._callers += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._callers -= 1
            if self._callers == 0:
                _take_control()
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


def _take_control() -> None:
    """Let this thread set limits: since 3.8, threadpoolctl ignores all but the first that did."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _libraries() -> Any:  # noqa: ANN401 (threadpoolctl has no types)
    """Return the libraries that have their own threads: NumPy's, and SciPy's own copy."""
    import scipy.optimize  # noqa: F401 (takes a while, and a server never needs it)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
