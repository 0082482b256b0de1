from __future__ import annotations

import threading

import pytest

from ebrank.threads import available_threads, map_blocks


@pytest.mark.parametrize("threads", [1, 2, 7, None])
def test_blocks_cover_the_work_in_order(threads: int | None) -> None:
    blocks = map_blocks(lambda a, b: (a, b), total=10, block=3, threads=threads)
    assert blocks == [(0, 3), (3, 6), (6, 9), (9, 10)]


def test_no_work_gives_no_blocks() -> None:
    assert map_blocks(lambda a, b: (a, b), total=0, block=3) == []


def test_blocks_really_run_side_by_side() -> None:
    both = threading.Barrier(2, timeout=10)  # passes only if two blocks wait at the same time
    map_blocks(lambda a, b: both.wait(), total=2, block=1, threads=2)


def test_an_error_in_a_block_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        map_blocks(lambda a, b: 1 // (a - 3), total=9, block=3, threads=2)


def test_some_core_is_available() -> None:
    assert available_threads() >= 1
