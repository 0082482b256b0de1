"""Group commit: flushed together, and told the truth when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ebrank.service.core.flusher import Flusher
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore


class SlowDisk(MemoryStore):
    """A store whose flushes wait for a sign, and do what they are told."""

    def __init__(self, effect: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.flushes = 0
        self.began, self.sign = asyncio.Semaphore(0), asyncio.Semaphore(0)
        self.effect = effect

    async def flush(self) -> None:
        self.flushes += 1
        self.began.release()
        await self.sign.acquire()
        self.effect()


def played(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scene(), timeout=20)

    asyncio.run(bounded())


def waiting(flusher: Flusher, count: int) -> list[asyncio.Task[None]]:
    return [asyncio.create_task(flusher.flushed()) for _ in range(count)]


def test_those_who_wait_share_one_flush() -> None:
    async def scene() -> None:
        store = SlowDisk()
        flusher = Flusher(store)
        [first] = waiting(flusher, 1)
        await store.began.acquire()
        others = waiting(flusher, 8)
        await asyncio.sleep(0)
        assert flusher.waiting == 8
        store.sign.release()
        await first
        await store.began.acquire()
        assert not any(task.done() for task in others), "they came after it began"
        store.sign.release()
        await asyncio.gather(*others)
        assert (store.flushes, flusher.waiting) == (2, 0)
        await flusher.close()

    played(scene)


def test_a_failed_flush_is_told_to_all_who_wait_for_it() -> None:
    problems: list[Exception] = [StoreError("the disk failed")]

    def fail_once() -> None:
        if problems:
            raise problems.pop()

    async def scene() -> None:
        store = SlowDisk(fail_once)
        flusher = Flusher(store)
        failed = waiting(flusher, 3)
        store.sign.release()
        for told in await asyncio.gather(*failed, return_exceptions=True):
            assert isinstance(told, StoreError)
        assert store.flushes == 1
        later = waiting(flusher, 1)  # it goes on
        store.sign.release()
        await later[0]
        await flusher.close()

    played(scene)


def test_who_no_longer_waits_takes_nobody_along() -> None:
    async def scene() -> None:
        store = SlowDisk()
        flusher = Flusher(store)
        first, second = waiting(flusher, 2)
        await store.began.acquire()
        first.cancel()  # while its flush is under way
        gone, other = waiting(flusher, 2)
        await asyncio.sleep(0)
        gone.cancel()
        store.sign.release()
        store.sign.release()
        await asyncio.gather(second, other)
        assert first.cancelled()
        assert gone.cancelled()
        await flusher.close()

    played(scene)


def test_whoever_measures_flushes_cannot_make_one_fail(caplog: pytest.LogCaptureFixture) -> None:
    def fail(seconds: float) -> None:
        raise ZeroDivisionError

    async def scene() -> None:
        flusher = Flusher(MemoryStore())
        flusher.on_flush = fail
        await flusher.flushed()
        await flusher.close()

    played(scene)
    assert "ZeroDivisionError" in caplog.text


def test_flushes_are_measured() -> None:
    async def scene() -> None:
        flusher, measured = Flusher(MemoryStore()), list[float]()
        flusher.on_flush = measured.append
        await flusher.flushed()
        await flusher.flushed()
        assert len(measured) == 2
        assert all(seconds >= 0.0 for seconds in measured)
        await flusher.close()

    played(scene)


def test_closing_flushes_for_those_who_wait_and_takes_nothing_more() -> None:
    async def scene() -> None:
        store = SlowDisk()
        flusher = Flusher(store)
        tasks = waiting(flusher, 3)
        await asyncio.sleep(0)
        store.sign.release()
        await flusher.close()
        await asyncio.sleep(0)
        assert all(task.done() and task.exception() is None for task in tasks)
        with pytest.raises(StoreError, match="closing"):
            await flusher.flushed()
        assert store.flushes == 1

    played(scene)
