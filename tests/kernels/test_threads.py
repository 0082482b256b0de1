from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy
from threadpoolctl import threadpool_info, threadpool_limits

from ebrank import EBRanker
from ebrank.kernels.threads import map_blocks, one_blas_thread
from ebrank.model.policy.policies import parse
from tests.model.prior.made_up import made_up

PATIENCE = 120.0  # seconds: other processes may be compiling


@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_blocks_cover_the_work_in_order(threads: int | None) -> None:
    blocks = map_blocks(lambda a, b: (a, b), total=10, block=3, threads=threads)
    assert blocks == [(0, 3), (3, 6), (6, 9), (9, 10)]


def test_blocks_really_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=PATIENCE)  # passes only if two blocks wait at once
    map_blocks(lambda a, b: both.wait(), total=2, block=1, threads=2)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_first_error_in_order_reaches_the_caller(threads: int) -> None:
    def fail_late(start: int, stop: int) -> int:
        if start == 3:
            time.sleep(0.05)  # block 6 fails earlier, but comes later
            raise ZeroDivisionError
        if start == 6:
            raise KeyError
        return start

    with pytest.raises(ZeroDivisionError):
        map_blocks(fail_late, total=9, block=3, threads=threads)


def test_blocks_of_blocks_do_not_wait_for_each_other() -> None:
    def inner(start: int, stop: int) -> int:
        return sum(map_blocks(lambda a, b: b - a, total=50, block=1, threads=2))

    assert map_blocks(inner, total=20, block=1, threads=2) == [50] * 20


def blas_threads() -> set[int]:
    """Return the number of threads of NumPy's library and of SciPy's, which is another one."""
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_blas_has_one_thread_until_the_last_caller_is_done() -> None:
    with threadpool_limits(2, "blas"):
        with one_blas_thread:
            with one_blas_thread:
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_any_thread_limits_blas_and_lifts_the_limit_of_another() -> None:
    """Of its own accord, threadpoolctl listens only to the thread that was first."""

    def enter() -> set[int]:
        one_blas_thread.__enter__()
        return blas_threads()

    def leave() -> set[int]:
        one_blas_thread.__exit__()
        return blas_threads()

    with (
        threadpool_limits(2, "blas"),
        ThreadPoolExecutor(1) as one,
        ThreadPoolExecutor(1) as other,
    ):
        steps = [(one, enter), (one, leave), (other, enter), (one, enter), (other, leave)]
        seen = [thread.submit(step).result() for thread, step in [*steps, (one, leave)]]
    assert seen == [{1}, {2}, {1}, {1}, {1}, {2}]


def test_a_fit_keeps_blas_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[int]] = {}

    def watch(module: object, name: str) -> None:
        function = getattr(module, name)

        def watched(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            seen.setdefault(name, set()).update(blas_threads())
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, watched)

    watch(scipy.optimize, "minimize")
    watch(np.linalg, "solve")
    with threadpool_limits(2, "blas"):
        EBRanker(parse("auto")).fit(*made_up(200, 3, seed=1))
    assert seen == {"minimize": {1}, "solve": {1}}
