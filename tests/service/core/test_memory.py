"""The memory of the process is shared out among caches, which shrink if it grows too large."""

from __future__ import annotations

import pytest

from ebrank.service.core import memory
from ebrank.service.core.memory import (
    LEAST_BYTES,
    RESERVE_BYTES,
    Memory,
    PackedCache,
    resident_bytes,
)

MB = 10**6


class Process:
    """A process that takes as much memory as it is told."""

    def __init__(self, taken: int) -> None:
        self.taken = taken

    def __call__(self) -> int:
        return self.taken


def shared(limit: int, process: Process) -> tuple[Memory, PackedCache[str], PackedCache[str]]:
    caches = PackedCache[str](), PackedCache[str]()
    watch = Memory(limit, [(caches[0], 0.75), (caches[1], 0.25)], process)
    watch.start()
    return watch, *caches


def test_caches_get_what_the_process_leaves() -> None:
    _, first, second = shared(1000 * MB, Process(200 * MB))
    left = 1000 * MB - 200 * MB - RESERVE_BYTES
    assert (first.room, second.room) == (left * 3 // 4, left // 4)


def test_caches_get_a_little_however_small_the_limit_is(caplog: pytest.LogCaptureFixture) -> None:
    _, first, second = shared(100 * MB, Process(200 * MB))
    assert first.room + second.room == LEAST_BYTES
    assert "Set limits.memory to at least" in caplog.text


def test_caches_shrink_while_the_process_is_too_large_and_grow_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = Process(200 * MB)
    monkeypatch.setattr(memory, "RESERVE_BYTES", 0)
    watch, first, _ = shared(1000 * MB, process)
    for number in range(1000):
        first.put(str(number), bytes(MB // 2))
    full, size = first.room, first.size
    process.taken = 1090 * MB  # within the tolerance
    watch.adjust()
    assert (first.room, first.size) == (full, size)
    process.taken = 1300 * MB
    watch.adjust()
    assert first.size <= first.room < size
    for _ in range(9):  # memory is not given back: they keep a quarter
        watch.adjust()
    assert first.room == full // 4
    process.taken = 900 * MB
    for _ in range(99):
        watch.adjust()
    assert first.room == full


def test_the_memory_of_this_process_is_known() -> None:
    before = resident_bytes()
    held = bytearray(50 * MB)
    held[::4096] = b"x" * len(held[::4096])
    assert 40 * MB < resident_bytes() - before < 80 * MB
