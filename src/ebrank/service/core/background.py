"""What requests share: the clock that dates the log, flushes, and turns; and chores at intervals.

A write that survives the process takes some ten microseconds. One that survives a power cut needs a
flush, which takes milliseconds. So a request writes at once, and then waits for a flush together
with all other waiting requests (group commit):

>>> from ebrank.service.store.memory import MemoryStore
>>> async def session() -> None:
...     flusher = Flusher(MemoryStore())
...     await flusher.flushed()  # wait for this before the answer leaves
...     await flusher.close()
>>> asyncio.run(session())

Chores save sums, roll up the log and start the trainer. A long call takes `Turns`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

from ebrank.service.logs import about
from ebrank.service.store.base import Store, StoreError

TICK_SECONDS = 1.0
GRACE_SECONDS = 300.0
"""How far times may be off without harm: lists are kept this much longer than events about them are
accepted, so that none counts twice. An event may be under way, and another server's clock behind.
"""
TOLERATED_SECONDS = 5.0
"""Clocks are corrected by less than this all the time: no reason to warn."""
MOST_MEASURED = 10_000
"""Flushes whose duration is kept until somebody looks: those of some seconds at least."""
DOUBT_SECONDS = 60.0
"""How long the clock must stay ahead of the timer to be trusted: a shorter jump may be a glitch."""

log = logging.getLogger("ebrank.service")
T = TypeVar("T")
K = TypeVar("K")
Sums: TypeAlias = defaultdict[str, float]


class Unsaved(Generic[K]):
    """Sums by a key, such as a minute, that are not yet in the store.

    >>> unsaved = Unsaved[float]()
    >>> unsaved.add(60.0, lists=1, clicks=0)
    >>> unsaved.put_back({60.0: {"lists": 2}})
    >>> {key: dict(sums) for key, sums in unsaved.taken().items()}
    {60.0: {'lists': 3.0}}
    """

    def __init__(self) -> None:
        self._sums: dict[K, Sums] = {}

    def of(self, key: K) -> Sums:
        """Return the sums of a key, to add to."""
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = defaultdict(float)
        return sums

    def add(self, key: K, **values: float) -> None:
        """Add to the sums of a key."""
        for name, value in values.items():
            if value:
                self.of(key)[name] += value

    def taken(self) -> dict[K, Sums]:
        """Return what was added since the last call."""
        sums, self._sums = self._sums, {}
        return sums

    def put_back(self, sums: Mapping[K, Mapping[str, float]]) -> None:
        """Put back sums that could not be stored."""
        for key, values in sums.items():
            self.add(key, **values)


class LogClock:
    """Dates the log: it never goes back, and a moment's jump of the machine's clock is ignored.

    While the machine's clock is behind the log, times in the log stand still; it warns once.
    Chores and windows, which must go on anyway, use the timer.

    >>> readings = iter([9.5, 10.0, 7.0, 11.0])
    >>> clock = LogClock(lambda: next(readings), timer=lambda: 0.0, last=9.0)
    >>> clock(), clock(), clock()
    (10.0, 10.0, 11.0)

    A clock that jumps ahead and stays there is taken to be right after a while: it was wrong
    before, or the machine was suspended. No list becomes old by that, see `ago`; but a half-life
    goes by.

    Attributes:
        last: what it returned last.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        timer: Callable[[], float] = time.monotonic,
        last: float = 0.0,
    ) -> None:
        self._clock = clock
        self._timer = timer
        self.last = last
        self._accepted = clock(), timer()
        self._doubted: float | None = None  # since when, by the timer
        self._jumps: list[tuple[float, float]] = []  # when, by the timer, and how far
        self._warned = False

    def __call__(self) -> float:
        """Return the time in seconds since 1970, never less than before; warn if it stands still.

        It warns again if the clock has caught up and falls behind again.
        """
        reading = self._reading()
        self.last = max(self.last, reading)
        behind = self.last - reading
        if behind > TOLERATED_SECONDS and not self._warned:
            log.warning(
                "the clock is %.0f s behind the log, whose time stands still until it catches up.  "
                "Check the machine's clock",
                behind,
            )
        self._warned = behind > TOLERATED_SECONDS
        return self.last

    def _reading(self) -> float:
        """Return what the machine's clock says, or should say if it has just jumped ahead."""
        reading, now = self._clock(), self._timer()
        expected = max(self._accepted[0] + now - self._accepted[1], self.last)
        if reading - expected > GRACE_SECONDS:
            if self._doubted is None:
                self._doubted = now
                log.warning(
                    "the clock jumped ahead by %.0f s. Check the machine's clock: it is taken "
                    "to be right if it stays there for %.0f s",
                    reading - expected,
                    DOUBT_SECONDS,
                    extra=about("clock"),
                )
            if now - self._doubted < DOUBT_SECONDS:
                return expected
            self._jumps.append((now, reading - expected))
        self._doubted = None
        self._accepted = reading, now
        return reading

    def ago(self, seconds: float) -> float:
        """Return what it said some seconds ago by the timer.

        Before it was started, it is taken to have run without jumps.

        >>> wall, timer = [1000.0], [0.0]
        >>> clock = LogClock(lambda: wall[0], timer=lambda: timer[0])
        >>> for wall[0], timer[0] in ((9000.0, 1.0), (9060.0, 61.0)):
        ...     print(clock(), clock.ago(100.0))
        1001.0 901.0
        9060.0 961.0
        """
        now, then = self(), self._timer() - seconds
        return now - seconds - sum(jump for when, jump in self._jumps if when > then)

    @property
    def lag(self) -> float:
        """How many seconds the machine's clock is behind the log; 0 if it is right."""
        return max(self.last - self._clock(), 0.0)


class Failures:
    """Failures of the store, which fail every request while they last.

    The log gets the first, and a line when the store works again.

    Attributes:
        lasting: whether a request failed and none has succeeded since.
        last: when it last failed, by the timer.
        problem: what was wrong then.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._first, self._count = 0.0, 0
        self.lasting, self.last, self.problem = False, 0.0, ""

    def add(self, problem: StoreError) -> None:
        """Record that the store failed."""
        self.last, self.problem = self._timer(), str(problem)
        if not self.lasting:
            self.lasting, self._first, self._count = True, self.last, 0
            log.error("the store failed: %s", problem, extra=about("store"))
        self._count += 1

    def end(self) -> None:
        """Record that the store served a request."""
        if self.lasting:
            self.lasting = False
            seconds = self._timer() - self._first
            log.warning(
                "the store works again, after %d failures in %.0f s",
                self._count,
                seconds,
                extra=about("store", failures=self._count, seconds=seconds),
            )


class Flusher:
    """Flushes a store for all requests that asked before a flush began.

    Attributes:
        took: the seconds of the latest flushes; metrics take them away.
        waiting: how many requests wait for the next flush.
    """

    def __init__(self, store: Store) -> None:
        self.took: deque[float] = deque(maxlen=MOST_MEASURED)
        self.waiting = 0
        self._store = store
        self._next: asyncio.Task[None] | None = None
        self._flushing = asyncio.Lock()
        self._closed = False

    async def flushed(self) -> None:
        """Return when everything written so far is on disk.

        If the flush fails, all requests that wait for it get the error. Their writes stay: they may
        or may not survive a power cut, and the same event sent again is a duplicate.
        """
        if self._closed:
            raise StoreError("the service is shutting down and accepts no more requests")
        if self._next is None:
            self._next = asyncio.create_task(self._flush())
            self._next.add_done_callback(_taken_note)  # if all who waited have left
        self.waiting += 1
        await asyncio.shield(self._next)  # a caller that goes away must not cancel the others

    async def close(self) -> None:
        """Flush for waiting requests, and stop; the store stays open."""
        self._closed = True
        if self._next is not None:
            await asyncio.wait([self._next])
        async with self._flushing:  # or one is under way
            pass

    async def _flush(self) -> None:
        async with self._flushing:
            self._next, self.waiting = None, 0  # who comes from now on needs another one
            began = time.perf_counter()
            await self._store.flush()
            self.took.append(time.perf_counter() - began)


def _taken_note(task: asyncio.Task[None]) -> None:
    """Ask a task for its failure, or the loop would log that nobody did."""
    if not task.cancelled():
        task.exception()


class Turns:
    """Runs long calls in short steps, one call at a time, with other requests in between.

    >>> async def count(turns: Turns) -> None:
    ...     async with turns:  # other long calls wait here
    ...         for number in range(3):
    ...             print(number)  # what takes a millisecond
    ...             await turns.next()
    >>> asyncio.run(count(Turns()))
    0
    1
    2
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._began = 0.0

    async def __aenter__(self) -> Turns:
        await self._lock.acquire()
        self._began = time.perf_counter()
        return self

    async def __aexit__(self, *problem: object) -> None:
        self._lock.release()

    async def portions(self, items: Sequence[T], size: int) -> AsyncIterator[Sequence[T]]:
        """Yield items in portions of a size, with others in between."""
        for begin in range(0, len(items), size):
            yield items[begin : begin + size]
            await self.next()

    async def next(self) -> None:
        """Let others run for twice as long as the last step took, or longer if they need it."""
        await asyncio.sleep(2.0 * (time.perf_counter() - self._began))
        self._began = time.perf_counter()


class Housekeeping:
    """Chores, each repeated at its interval until closed.

    A chore that fails runs again at its next turn, whatever it raised. The log says so once for
    each kind of failure, and again if it comes back after a turn that went well.
    """

    def __init__(self, timer: Callable[[], float], tick: float = TICK_SECONDS) -> None:
        """Take a timer that never jumps, such as `time.monotonic`."""
        self._timer = timer
        self._tick = tick
        self._chores: list[asyncio.Task[None]] = []

    def add(self, seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
        """Do a chore at this interval in seconds by the timer."""
        self._chores.append(asyncio.create_task(self._repeat(seconds, chore)))

    async def close(self) -> None:
        """Stop; a chore under way finishes or leaves nothing half done."""
        for task in self._chores:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._chores = []

    async def _repeat(self, seconds: float, chore: Callable[[], Awaitable[None]]) -> None:
        last, said = self._timer(), set[type[Exception]]()
        while True:
            await asyncio.sleep(min(self._tick, seconds))
            if self._timer() - last < seconds:
                continue
            last = self._timer()
            try:
                await chore()
            except Exception as problem:
                if type(problem) not in said:
                    _say(problem)
                said.add(type(problem))
            else:
                said.clear()


def _say(problem: Exception) -> None:
    """Log a chore's failure: a store's in its own words, since requests fail too; a bug in full."""
    if isinstance(problem, StoreError):
        log.warning("%s", problem, extra=about("chore"))
    else:
        log.error(
            "a background task failed; it will be retried", exc_info=problem, extra=about("chore")
        )
