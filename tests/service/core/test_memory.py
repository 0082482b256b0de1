"""Packed texts are what they were, and caches share the memory of the process."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.service.core import memory
from ebrank.service.core.memory import (
    DROPPED_AT_ONCE,
    ENTRY_BYTES,
    LEAST_BYTES,
    RESERVE_BYTES,
    Memory,
    PackedCache,
    PackedStrings,
    resident_bytes,
)

MB = 10**6


def shared(limit: int, taken: list[int]) -> tuple[Memory, PackedCache[str], PackedCache[str]]:
    caches = PackedCache[str](), PackedCache[str]()
    watch = Memory(limit, [(caches[0], 0.75), (caches[1], 0.25)], lambda: taken[0])
    watch.start()
    return watch, *caches


def test_caches_get_what_the_process_leaves() -> None:
    _, first, second = shared(1000 * MB, [200 * MB])
    left = 1000 * MB - 200 * MB - RESERVE_BYTES
    assert (first.room, second.room) == (left * 3 // 4, left // 4)


def test_caches_get_a_little_however_small_the_limit_is(caplog: pytest.LogCaptureFixture) -> None:
    _, first, second = shared(100 * MB, [200 * MB])
    assert first.room + second.room == LEAST_BYTES
    assert "Set limits.memory to at least" in caplog.text


def test_caches_shrink_while_the_process_is_too_large_and_grow_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = [200 * MB]
    monkeypatch.setattr(memory, "RESERVE_BYTES", 0)
    watch, first, _ = shared(1000 * MB, taken)
    for number in range(1000):
        first.put(str(number), bytes(MB // 2))
    full, size = first.room, first.size
    taken[0] = 1090 * MB  # within the tolerance
    watch.adjust()
    assert (first.room, first.size) == (full, size)
    taken[0] = 1300 * MB
    watch.adjust()
    assert first.size <= first.room < size
    for _ in range(9):  # memory is not given back: they keep a quarter
        watch.adjust()
    assert first.room == full // 4
    taken[0] = 900 * MB
    for _ in range(99):
        watch.adjust()
    assert first.room == full


def test_the_memory_of_this_process_is_known() -> None:
    before = resident_bytes()
    held = bytearray(50 * MB)
    held[::4096] = b"x" * len(held[::4096])
    assert 40 * MB < resident_bytes() - before < 80 * MB


TEXTS = st.lists(st.text(st.characters(), max_size=5), max_size=8)


@given(TEXTS, TEXTS)
def test_they_are_a_list_of_texts(first: list[str], more: list[str]) -> None:
    names = PackedStrings(first).extended(more)
    both = first + more
    assert list(names) == both
    assert len(names) == len(both)
    assert [names[at] for at in range(len(both))] == both
    assert [names[at] for at in range(-len(both), 0)] == both
    assert names[1:5:2] == both[1:5:2]
    assert all(names.index(name) == both.index(name) for name in both)


def test_there_is_nothing_beyond_the_end() -> None:
    with pytest.raises(IndexError):
        PackedStrings(["a"])[1]
    with pytest.raises(IndexError):
        PackedStrings()[0]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 300), st.booleans()), max_size=200),
    st.sampled_from([0, 500, 5000]),
)
def test_a_cache_keeps_to_its_room(steps: list[tuple[int, int, bool]], room: int) -> None:
    cache: PackedCache[str] = PackedCache(room)
    values: dict[str, bytes] = {}
    for number, length, keep in steps:
        key = str(number)
        if keep:
            values[key] = bytes(length)
            cache.put(key, values[key])
        else:
            assert cache.get(key) in (None, values.get(key))
        assert cache.size <= room
        assert cache.size == sum(
            ENTRY_BYTES + len(key) + len(value)
            for table in cache._tables
            for key, value in table.items()
        )
    for key in list(values):
        cache.pop(key)
    assert (cache.size, len(cache)) == (0, 0)


def test_no_table_is_large_and_there_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_TOGETHER", 80)
    cache: PackedCache[str] = PackedCache(10**9)
    rng = np.random.default_rng(1)
    for number in range(20_000):
        cache.put(f"{number % 1000}", b"")
        cache.pop(f"{rng.integers(1000)}")
        assert max(map(len, cache._tables)) <= 80
        assert len(cache._tables) <= 8 + 2 * 8 * 1000 / 80


def test_what_was_used_lately_outlives_what_was_not() -> None:
    cache: PackedCache[str] = PackedCache(100 * (ENTRY_BYTES + 12))
    cache.put("used", b"12345678")
    for number in range(1000):
        cache.put(f"{number:04d}", b"12345678")
        assert cache.get("used") is not None
    assert cache.get("0999") is not None
    assert cache.get("0800") is None
    assert len(cache) == 100


def test_much_is_dropped_a_little_at_a_time() -> None:
    names: PackedCache[str] = PackedCache(10**9)
    for number in range(3 * DROPPED_AT_ONCE):
        names.put(str(number), b"")
    names.room = 0
    names.trim()
    assert len(names) == 2 * DROPPED_AT_ONCE
