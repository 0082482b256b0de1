"""Group commit: written at once, flushed together, and told the truth when it fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from ebrank.service.core.committer import Committer
from ebrank.service.store.base import StoreError
from ebrank.service.store.memory import MemoryStore
from ebrank.service.store.records import Operation, Written
from tests.service.store.samples import event, new_items, ranking


class SlowDisk(MemoryStore):
    """A store whose flushes wait for a sign, and do what they are told."""

    def __init__(self, effect: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self.put_items("q", new_items("a", "b", "c"), 1.0)
        self.flushes = 0
        self.began, self.sign = threading.Semaphore(0), threading.Semaphore(0)
        self.effect = effect

    def flush(self) -> None:
        self.flushes += 1
        self.began.release()
        assert self.sign.acquire(timeout=10)
        self.effect()


def test_those_who_wait_share_one_flush() -> None:
    store = SlowDisk()
    committer = Committer(store)
    entries = [ranking(f"r{number}", "abc") for number in range(9)]
    first = committer.submit([entries[0]], flush=True)
    assert store.began.acquire(timeout=10)
    others = [committer.submit([entry], flush=True) for entry in entries[1:]]
    assert list(store.log()) == entries, "written before any flush is done"
    assert not any(commit.on_disk.done() for commit in (first, *others))
    store.sign.release()
    first.on_disk.result(timeout=10)
    assert not any(commit.on_disk.done() for commit in others), "they came after it began"
    store.sign.release()
    for commit in others:
        commit.on_disk.result(timeout=10)
    assert store.flushes == 2
    committer.close()


def test_without_a_flush_nobody_waits() -> None:
    store = SlowDisk()
    committer = Committer(store)
    commit = committer.submit([ranking("r", "abc")], flush=False)
    assert commit.written == [Written("accepted")]
    assert commit.on_disk.done()
    committer.close()
    assert store.flushes == 0


def test_what_was_written_is_told_at_once_and_in_order() -> None:
    store = SlowDisk()
    committer = Committer(store)
    one = ranking("r", "abc")
    click = event("e", one, "a")
    commit = committer.submit([one, click, click], flush=False)
    assert [written.status for written in commit.written] == ["accepted", "accepted", "duplicate"]
    committer.close()


def test_a_failed_write_is_raised_and_asks_for_no_flush() -> None:
    store = SlowDisk()
    committer = Committer(store)
    with pytest.raises(StoreError, match="no item 'x'"):
        committer.submit([ranking("r", "ax")], flush=True)
    committer.close()
    assert store.flushes == 0


def test_a_failed_flush_is_told_to_all_who_wait_for_it() -> None:
    problems: list[Exception] = [StoreError("the disk failed")]

    def fail_once() -> None:
        if problems:
            raise problems.pop()

    store = SlowDisk(fail_once)
    committer = Committer(store)
    failed = committer.flushed()
    store.sign.release()
    with pytest.raises(StoreError, match="the disk failed"):
        failed.result(timeout=10)
    later = committer.flushed()  # the thread is still there
    store.sign.release()
    later.result(timeout=10)
    committer.close()


def test_who_no_longer_waits_takes_nobody_along() -> None:
    store = SlowDisk()
    committer = Committer(store)
    first = committer.flushed()
    assert store.began.acquire(timeout=10)
    assert not first.cancel(), "its flush is under way"
    gone, other = committer.flushed(), committer.flushed()
    assert gone.cancel()
    store.sign.release()
    store.sign.release()
    first.result(timeout=10)
    other.result(timeout=10)
    committer.close()


def test_whoever_measures_flushes_cannot_make_one_fail(caplog: pytest.LogCaptureFixture) -> None:
    store = SlowDisk()
    committer = Committer(store)

    def fail(seconds: float) -> None:
        raise ZeroDivisionError

    committer.on_flush = fail
    waiting = committer.flushed()
    store.sign.release()
    waiting.result(timeout=10)
    committer.close()
    assert "ZeroDivisionError" in caplog.text


def test_closing_flushes_for_those_who_wait_and_takes_nothing_more() -> None:
    store = SlowDisk()
    committer = Committer(store)
    commits = [committer.submit([ranking(f"r{n}", "a")], flush=True) for n in range(3)]
    for _ in commits:
        store.sign.release()
    committer.close()
    assert all(commit.on_disk.done() for commit in commits)
    for refused in (
        lambda: committer.submit([ranking("r9", "a")], flush=True),
        lambda: committer.submit([ranking("r9", "a")], flush=False),
        committer.flushed,
    ):
        with pytest.raises(StoreError, match="closing"):
            refused()
    assert store.ranking("r9") is None


def test_many_threads_submit_at_once() -> None:
    store = MemoryStore()
    store.put_items("q", new_items("a", "b", "c"), 1.0)
    committer = Committer(store)

    def work(worker: int) -> None:
        for number in range(50):
            entries: Sequence[Operation] = [ranking(f"r{worker}-{number}", "abc")]
            committer.submit(entries, flush=True).on_disk.result(timeout=10)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    committer.close()
    assert len(list(store.log())) == 200
