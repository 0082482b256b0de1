"""Group commit: writes happen at once, and everybody who waits for the disk shares one flush.

A write that survives the process takes some ten microseconds, one that survives a power cut takes a
flush, which is milliseconds. So `submit` writes in the caller's thread, in one transaction, and a
second thread flushes for all who asked while it was busy. A thread that wrote would be slower: each
statement lets go of Python's global lock, and would wait for a busy event loop to get it back.

>>> from ebrank.service.store.memory import MemoryStore
>>> from ebrank.service.store.records import RankingEntry
>>> committer = Committer(MemoryStore())
>>> entry = RankingEntry("r1", "shoes", 1.0, 0, items=(), examination=())
>>> commit = committer.submit([entry], flush=True)
>>> commit.written  # known at once: add it to counters in memory now, in the order of the log
[Written(status='accepted', reason='', shows=False)]
>>> commit.on_disk.result()  # wait for this before the answer leaves
>>> committer.close()
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from ebrank.service.core.clock import log
from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.records import Operation, Written


class Commit(NamedTuple):
    """What became of a submission, and when it is on disk: at once if no flush was asked for."""

    written: list[Written]
    on_disk: Future[None]


class Committer:
    """Writes to a store at once, and flushes in a thread of its own.

    Commits are logged in the order of submission, and reach the disk in that order.

    Attributes:
        on_flush: is told the seconds that each flush took, in the thread that flushes.
    """

    def __init__(self, store: Store) -> None:
        self.on_flush: Callable[[float], None] = lambda seconds: None
        self._store = store
        self._waiting: list[Future[None]] = []
        self._closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)
        self._thread.start()

    def submit(self, operations: Sequence[Operation], *, flush: bool) -> Commit:
        """Write operations in one transaction; raise `StoreError` if nothing of it was stored.

        If a flush fails, `on_disk` gets the error. What was written stays written: it may or may
        not survive a power cut, and the same event sent again is a duplicate.
        """
        if self._closed:
            raise StoreError("the service is closing and takes nothing more")
        written = self._store.write(operations, flush=False)
        return Commit(written, self.flushed() if flush else _finished())

    def flushed(self) -> Future[None]:
        """Return a future that completes when all that was written so far is on disk."""
        future: Future[None] = Future()
        with self._news:
            if self._closed:
                raise StoreError("the service is closing and takes nothing more")
            self._waiting.append(future)
            self._news.notify()
        return future

    @property
    def waiting(self) -> int:
        """How many wait for the next flush."""
        return len(self._waiting)

    def close(self) -> None:
        """Flush for those who wait, and stop; the store stays open."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        while round_ := self._next_round():
            began = time.perf_counter()
            # From here on nobody can cancel; those who did are not told anything.
            told = [future for future in round_ if future.set_running_or_notify_cancel()]
            try:
                self._store.flush()
            except BaseException as problem:  # the thread must outlive whatever a store raises
                for future in told:
                    future.set_exception(problem)
            else:
                self._measured(time.perf_counter() - began)
                for future in told:
                    future.set_result(None)

    def _measured(self, seconds: float) -> None:
        try:
            self.on_flush(seconds)
        except Exception:  # whoever measures may not stop what is measured
            log.exception("the time of a flush was not noted")

    def _next_round(self) -> list[Future[None]]:
        """Return all who wait for the next flush; nobody when closed."""
        with self._news:
            while not self._waiting and not self._closed:
                self._news.wait()
            round_, self._waiting = self._waiting, []
            return round_


def _finished() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future
