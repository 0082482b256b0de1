"""Group commit: what is waiting is written in one transaction, with one flush.

A flush takes milliseconds, a write without one microseconds. A thread takes all submissions that
came while it was busy, writes them together in the order in which they came, and only then tells
everybody. So durability costs one flush per round, however many are waiting.

>>> from ebrank.service.store.memory import MemoryStore
>>> from ebrank.service.records import RankingEntry
>>> committer = Committer(MemoryStore())
>>> entry = RankingEntry("r1", "shoes", 1.0, 0, items=(), examination=())
>>> committer.submit([entry], flush=True).result()
[Written(status='accepted', reason='')]
>>> committer.close()
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ebrank.service.records import Operation, Written
from ebrank.service.store.base import Store, StoreError

MAX_OPERATIONS = 10_000
"""No transaction is longer: the first submission in line should not wait for all of them."""


@dataclass(eq=False)
class _Submission:
    operations: Sequence[Operation]
    flush: bool
    future: Future[list[Written]] = field(default_factory=Future)


class Committer:
    """Writes submissions to a store from a thread of its own, in their order.

    Futures complete in the order of submission. If a transaction fails, everybody in it gets the
    error and nothing of it is stored.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: list[_Submission] = []
        self._closed = False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    def submit(self, operations: Sequence[Operation], *, flush: bool) -> Future[list[Written]]:
        """Return the future of what becomes of these operations, all in one transaction.

        With `flush` it completes when they, and all that was submitted before, are on disk.
        """
        submission = _Submission(operations, flush)
        with self._news:
            if self._closed:
                raise StoreError("the service is closing and takes nothing more")
            self._waiting.append(submission)
            self._news.notify()
        return submission.future

    def close(self) -> None:
        """Write what is waiting and stop; the store stays open."""
        with self._news:
            self._closed = True
            self._news.notify()
        self._thread.join()

    def _run(self) -> None:
        while round_ := self._next_round():
            self._write(round_)

    def _next_round(self) -> list[_Submission]:
        """Return what is to be written together; empty when closed and nothing is left."""
        with self._news:
            while not self._waiting and not self._closed:
                self._news.wait()
            total, taken = 0, 0
            for submission in self._waiting:
                total += len(submission.operations)
                if taken and total > MAX_OPERATIONS:
                    break
                taken += 1
            round_, self._waiting = self._waiting[:taken], self._waiting[taken:]
            return round_

    def _write(self, round_: Sequence[_Submission]) -> None:
        operations = [operation for submission in round_ for operation in submission.operations]
        flush = any(submission.flush for submission in round_)
        try:
            written = self._store.write(operations, flush=flush)
        except BaseException as problem:  # the thread must outlive whatever a store raises
            for submission in round_:
                submission.future.set_exception(problem)
            return
        begin = 0
        for submission in round_:
            end = begin + len(submission.operations)
            submission.future.set_result(written[begin:end])
            begin = end
