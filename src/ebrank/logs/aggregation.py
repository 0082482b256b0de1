"""`ebrank aggregate`: a log of any size becomes evidence for each query and item.

The result is what the service would have counted from the same events: one impression for each
item of a list, with one outcome; the same event counts once, however often it is logged.

>>> import tempfile
>>> from ebrank.logs import read_evidence
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "log.csv").write_text('''ranking,query,item,type,rank
... r1,tea,sencha,impression,1
... r1,tea,sencha,click,
... r1,tea,sencha,click,
... r1,tea,assam,impression,2
... ''')
>>> report = aggregate([folder / "log.csv"], folder / "evidence.parquet")
>>> report.impressions, report.outcomes
(2, {'click': 1})
>>> evidence = read_evidence(folder / "evidence.parquet")
>>> evidence.items, evidence.stats.shown, evidence.stats.clicks
(['assam', 'sencha'], array([1, 1]), array([0, 1]))
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ebrank.errors import DataError, ParameterError
from ebrank.evidence.behaviors import CLICKS, SHOWN, Behaviors
from ebrank.files import make_private_folder
from ebrank.logs import engines, evidence_file, locate, sql
from ebrank.logs.engines import Engine, EngineError, EngineName
from ebrank.logs.fields import FieldMap
from ebrank.logs.files import Source, find, sources
from ebrank.parameters import check_whole
from ebrank.paths import expanded

Paths: TypeAlias = Iterable[str | os.PathLike[str]]
Progress: TypeAlias = Callable[[int, int, str], None]
"""Called with how much of a step is done, the total, and the step's name."""

MEMORY = 4 * 10**9
_STEPS = 1000
_MOST_TYPES = 20
_TRIES = 20


@dataclass(frozen=True)
class Report:
    """The outcome of an aggregation.

    Attributes:
        events: rows that were read.
        impressions: how many counted.
        outcomes: how many of them led to each behavior, by name.
        rows: of evidence that were written.
        ignored: events of types that do not count; the most frequent types.
        bad: events left out because a field is missing or invalid, by field; only with `skip_bad`.
        unlisted: items with events that are in no list.
        unplaced: items with a behavior but no impression or rank.
        seconds: how long it took.
    """

    events: int
    impressions: int
    outcomes: dict[str, int]
    rows: int
    ignored: dict[str, int] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    unlisted: int = 0
    unplaced: int = 0
    seconds: float = 0.0


def aggregate(
    log: Paths,
    out: str | os.PathLike[str],
    *,
    lists: Paths = (),
    fields: FieldMap | None = None,
    behaviors: Behaviors = CLICKS,
    impression: str = "impression",
    impressions: sql.Impressions = "confirmed",
    first_rank: int = 1,
    skip_bad: bool = False,
    engine: EngineName = "duckdb",
    memory: int = MEMORY,
    threads: int | None = None,
    spill: str | os.PathLike[str] | None = None,
    master: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Count what a log says about each query and item, and write it to a new Parquet file.

    Args:
        log: files and folders of events.
        out: the file to write.
        lists: files with a row for each served list: its query and, optionally, its items.
        fields: which columns hold what.
        behaviors: types of events that count.
        impression: the type of event that is an impression.
        impressions: whether an item counts as shown when its list was served, as `lists` say, or
            when an event confirms it: an impression, or a behavior.
        first_rank: the log's number of the first rank, 0 or 1.
        skip_bad: leave out events with a missing or invalid field, and count them.
        engine: runs the SQL.
        memory: bytes the engine may take before it spills.
        threads: cores to use, all by default.
        spill: folder for what does not fit into memory; by default one beside `out`.
        master: the cluster, for Spark.
        progress: called with the progress.

    Raises:
        DataError: if a file cannot be read, lacks a column, or has a bad row: names the place.
    """
    began = time.perf_counter()
    check_whole("first_rank", first_rank, at_least=0)
    check_whole("threads", threads, at_least=1, optional=True)
    target, fields = expanded(out), fields or FieldMap()
    if target.exists():
        raise ParameterError(f"{target}: already exists. Name a new file.")
    listed = find(lists)
    counting = sql.Counting(behaviors, impression, impressions, bool(listed), first_rank)
    inputs = _Inputs(
        sources(find(log), fields.events, _needed(fields, counting)),
        sources(listed, fields.lists, _needed_of_lists(fields, counting)),
        counting,
    )
    with (
        _folder(target, spill) as scratch,
        _engine(engine, memory, threads, scratch, master) as running,
    ):
        job = _Job(running, inputs, progress or _silent)
        types = job.check(skip_bad=skip_bad)
        return job.report(types, target, began)


def _needed(fields: FieldMap, counting: sql.Counting) -> set[str]:
    """Return the fields that events must have."""
    needed = {"ranking", "item", "type"} | ({"rank"} if not counting.served else set())
    needed |= set() if counting.lists else {"query"}
    needed |= {"value"} if counting.valued else set()
    return needed | {name for name in fields.named if not name.startswith("lists.")}


def _needed_of_lists(fields: FieldMap, counting: sql.Counting) -> set[str]:
    named = {name.removeprefix("lists.") for name in fields.named if name.startswith("lists.")}
    return {"ranking", "query"} | ({"items"} if counting.served else set()) | named


@dataclass(frozen=True)
class _Inputs:
    """The files, and what counts."""

    events: Sequence[Source]
    lists: Sequence[Source]
    counting: sql.Counting


class _Job:
    """An aggregation under way."""

    def __init__(self, engine: Engine, inputs: _Inputs, progress: Progress) -> None:
        self._engine = engine
        self._inputs = inputs
        self._progress = progress
        for number, source in enumerate(inputs.events):
            engine.offer(f"events_{number}", source)
        for number, source in enumerate(inputs.lists):
            engine.offer(f"lists_{number}", source)
        engine.view("events", sql.events(inputs.events, inputs.counting))
        if inputs.lists:
            engine.view("lists", sql.lists(inputs.lists))

    def check(self, *, skip_bad: bool) -> list[tuple[str | None, int | None, str | None, int]]:
        """Return how many events there are of each type, outcome and problem.

        Raises:
            DataError: at the first bad row, unless they are to be skipped.
        """
        inputs = self._inputs
        with self._readable():
            types = self._engine.rows(sql.TYPES, self._step("checking"))
            of_lists = (
                self._engine.rows(sql.LIST_PROBLEMS, self._step("checking lists"))
                if inputs.lists
                else []
            )
        if not skip_bad and any(problem is not None for _, _, problem, _ in types):
            raise self._bad_row("events", inputs.events)
        if not skip_bad and of_lists:
            raise self._bad_row("lists", inputs.lists)
        if not any(outcome is not None for _, outcome, _, _ in types):
            raise self._nothing(types)
        return [(kind, outcome, problem, count) for kind, outcome, problem, count in types]

    def report(
        self,
        types: Sequence[tuple[str | None, int | None, str | None, int]],
        target: Path,
        began: float,
    ) -> Report:
        """Count, write the evidence, and return the report."""
        counting = self._inputs.counting
        with self._readable():
            self._engine.table("counted", sql.counted(counting), self._step("counting"))
        totals = self._engine.rows(sql.TOTALS, _ignore)
        times = [last for *_, last in totals if last is not None]
        about = evidence_file.About(
            counting.behaviors, counting.impressions, max(times, default=None)
        )
        batches = self._engine.batches(sql.EVIDENCE, self._step("writing"))
        rows = evidence_file.write(target, about, batches)
        good = {outcome: count for refused, outcome, _, count, _ in totals if not refused}
        names = counting.behaviors.names
        return Report(
            events=sum(count for *_, count in types),
            impressions=sum(good.values()),
            outcomes={name: good.get(SHOWN + 1 + at, 0) for at, name in enumerate(names)},
            rows=rows,
            ignored=_ignored(types),
            bad=_bad(types),
            unlisted=sum(count for *_, why, count, _ in totals if why == sql.UNLISTED),
            unplaced=sum(count for *_, why, count, _ in totals if why == sql.UNPLACED),
            seconds=time.perf_counter() - began,
        )

    def _step(self, name: str) -> Callable[[float], None]:
        self._progress(0, _STEPS, name)
        return lambda share: self._progress(int(share * _STEPS), _STEPS, name)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """If an engine failed because a file is unreadable, raise an error that names the line."""
        try:
            yield
        except EngineError as problem:
            place = locate.unreadable(self._inputs.events) or locate.unreadable(self._inputs.lists)
            raise (place or problem) from problem

    def _bad_row(self, view: str, of: Sequence[Source]) -> DataError:
        first = f"SELECT min(file), min(problem) FROM {view} WHERE problem IS NOT NULL"
        [(file, field)] = self._engine.rows(first, self._step("looking for the bad row"))
        counting, in_lists = self._inputs.counting, view == "lists"
        path = locate.path_of(file)
        found = locate.bad_row(of, path, counting, lists=in_lists)
        return found or DataError(
            f"in a row, {field} is missing or invalid",
            path=path,
            remedy=f"{locate.REMEDIES[field]}. --skip-bad leaves such rows out.",
        )

    def _nothing(
        self, types: Sequence[tuple[str | None, int | None, str | None, int]]
    ) -> DataError:
        first, wanted = self._inputs.events[0], ", ".join(self._inputs.counting.types)
        there = ", ".join(repr(kind) for kind, *_ in types[:_MOST_TYPES]) or "none"
        return DataError(
            f"no event counts: the types that count are {wanted}, but the log has {there}",
            path=first.files[0],
            remedy="Name yours with --impression and --behavior, or another column with --map "
            "type=COLUMN.",
        )


def _ignored(types: Iterable[tuple[str | None, int | None, str | None, int]]) -> dict[str, int]:
    others = [(kind or "", count) for kind, outcome, _, count in types if outcome is None]
    return dict(others[:_MOST_TYPES])


def _bad(types: Iterable[tuple[str | None, int | None, str | None, int]]) -> dict[str, int]:
    bad: dict[str, int] = {}
    for _, _, problem, count in types:
        if problem is not None:
            bad[problem] = bad.get(problem, 0) + count
    return bad


@contextmanager
def _engine(
    name: EngineName, memory: int, threads: int | None, spill: Path, master: str | None
) -> Iterator[Engine]:
    engine = engines.start(name, memory=memory, threads=threads, spill=spill, master=master)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def _folder(target: Path, spill: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield a temporary folder for what does not fit into memory."""
    if not target.parent.is_dir():
        raise ParameterError(f"{target}: folder not found: {target.parent}. Create it first.")
    parent = target.parent if spill is None else expanded(spill)
    make_private_folder(parent)
    folder = Path(tempfile.mkdtemp(prefix=".ebrank-spill-", dir=parent))
    try:
        yield folder
    finally:
        for _ in range(_TRIES):  # Spark's own cleaning may be under way
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)


def _ignore(share: float) -> None:
    """Tell nobody: it takes no time."""


def _silent(done: int, total: int, step: str) -> None:
    """Tell nobody."""
