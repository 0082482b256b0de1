"""`ebrank aggregate`: a log of any size becomes evidence for each query and item.

The result is what the service would have counted from the same events: one impression for each
item of a list, with one outcome; the same event counts once, however often it is logged.

>>> import tempfile
>>> from ebrank.addons.logs import read_evidence
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
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeAlias

from ebrank.addons.logs import evidence_file, sql, ubi
from ebrank.addons.logs.engine import Engine, EngineError
from ebrank.addons.logs.fields import CLICKED, REMEDIES, ROW, UBI_ITEMS, FieldMap
from ebrank.addons.logs.files import LogColumn, LogSource, empty_log, find, sources
from ebrank.addons.tables import wrong_value
from ebrank.environment.files import make_private_folder
from ebrank.environment.paths import expanded
from ebrank.errors import DataError, ParameterError
from ebrank.evidence.behaviors import CLICKS, SHOWN, Behaviors
from ebrank.evidence.slots import slot_name
from ebrank.parameters import check_whole

Paths: TypeAlias = Iterable[str | os.PathLike[str]]
Progress: TypeAlias = Callable[[int, int, str], None]
"""Called when a step begins: with how many are done, how many there are, and the step's name."""

MEMORY = 4 * 10**9
_MOST_TYPES = 20


@dataclass(frozen=True)
class Application:
    """What was assumed about the ranks of an application's events, in User Behavior Insights.

    Attributes:
        application: its name.
        ranks: where they come from, or how they are counted; empty for events left out.
        evidence: what tells.
        used: events that count, each as often as it is there.
        dropped: events left out, by reason.
    """

    application: str
    ranks: str
    evidence: str
    used: int
    dropped: dict[str, int] = field(default_factory=dict)


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
        repeated: events that say again what others of the same list, item and type said.
        applications: what was assumed about ranks, only of User Behavior Insights.
        warnings: what makes the evidence weaker than it seems.
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
    repeated: int = 0
    applications: list[Application] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
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
    clicked: str | None = None,
    first_rank: int | None = None,
    skip_bad: bool = False,
    memory: int = MEMORY,
    threads: int | None = None,
    spill: str | os.PathLike[str] | None = None,
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
        clicked: the column that says whether an item was clicked, if the log has a row for each
            item shown instead of a row for each event. It then needs no type, and no ranking
            either: without, each row is an impression of its own.
        first_rank: the log's number of the first rank, 0 or 1. By default 1; in a log of User
            Behavior Insights it is found out for each application.
        skip_bad: leave out events with a missing or invalid field, and count them. In a log of User
            Behavior Insights this is always so.
        memory: bytes that DuckDB may take before it spills.
        threads: cores to use, all by default.
        spill: folder for what does not fit into memory; by default one beside `out`.
        progress: called with the progress.

    Raises:
        DataError: if a file cannot be read, lacks a column, or has a bad row: names the place.
    """
    began = time.perf_counter()
    check_whole("first_rank", first_rank, at_least=0, optional=True)
    check_whole("threads", threads, at_least=1, optional=True)
    target, fields = expanded(out), fields or FieldMap()
    if target.exists():
        raise ParameterError(f"{target}: already exists. Name a new file.")
    if clicked is not None:
        fields = _with_clicked(fields, clicked, behaviors, impressions)
    files, listed = find(log), find(lists)
    first = 1 if first_rank is None or fields.ubi else first_rank
    counting = sql.Counting(behaviors, impression, impressions, bool(listed) or fields.ubi, first)
    of_lists = {"ranking", "query"} | ({"items"} if counting.served else set())
    if fields.ubi:
        files = listed = [*files, *listed]
    events = sources(files, fields.events, fields.required("events", _needed(counting, fields)))
    served = sources(listed, fields.lists, fields.required("lists", of_lists))
    if fields.ubi:
        for name in UBI_ITEMS:
            older = sources(listed, {**fields.lists, "items": name}, ())
            served += [source for source in older if source.columns["items"].kind != "absent"]
    if clicked is not None and all(each.columns["ranking"].kind == "absent" for each in events):
        counting = replace(counting, single=True)
    with (
        _folder(target, spill) as scratch,
        closing(Engine(memory=memory, threads=threads, spill=scratch)) as engine,
        _named_line([*events, *served]),
    ):
        job: type[_Job] = _UbiJob if fields.ubi else _Job
        run = job(engine, events, served, counting, progress, first_rank)
        report = run.report(run.types(skip_bad=skip_bad), target)
    return replace(report, seconds=time.perf_counter() - began)


def _with_clicked(
    fields: FieldMap, column: str, behaviors: Behaviors, impressions: sql.Impressions
) -> FieldMap:
    if fields.ubi or impressions == "served":
        raise ParameterError(
            "a log with a row for each item shown has no served lists, and is not one of User "
            "Behavior Insights: leave out --clicked, or --ubi and --impressions served"
        )
    if len(behaviors.all) != 1 or behaviors.negative:
        raise ParameterError("--clicked counts one behavior; several need a row for each event")
    return FieldMap({**fields.columns, CLICKED: column}, fields.named | {CLICKED})


def _needed(counting: sql.Counting, fields: FieldMap) -> set[str]:
    """Return the fields that events must have."""
    if fields.ubi:
        return {"ranking", "item", "type"}
    needed = {"item"} if CLICKED in fields.columns else {"ranking", "item", "type"}
    needed |= {"rank"} if not counting.served else set()
    needed |= set() if counting.lists else {"query"}
    return needed | ({"value"} if counting.valued else set())


class _Types(NamedTuple):
    """How many events there are of a type, an outcome and a problem.

    In User Behavior Insights, also of an application and a convention of ranks; `again` is how many
    of them were merged with others before they were counted.
    """

    type: str | None
    outcome: int | None
    problem: str | None
    events: int
    application: str = ""
    convention: str | None = None
    again: int = 0


@dataclass(frozen=True)
class _Job:
    """An aggregation under way."""

    engine: Engine
    events: Sequence[LogSource]
    lists: Sequence[LogSource]
    counting: sql.Counting
    progress: Progress | None
    first_rank: int | None
    steps: Iterator[int] = field(default_factory=count)
    most_steps = 3

    def __post_init__(self) -> None:
        for view, files in (("events", self.events), ("lists", self.lists)):
            for number, source in enumerate(files):
                self.engine.offer(f"{view}_{number}", source)

    def types(self, *, skip_bad: bool) -> list[_Types]:
        """Return how many events there are of each type, outcome and problem.

        Raises:
            DataError: at the first bad row, unless they are to be skipped.
        """
        self.engine.view("events", sql.events(self.events, self.counting))
        if self.lists:
            self.engine.view("lists", sql.lists(self.lists))
        self._step("checking")
        types = [_Types(*row) for row in self.engine.rows(sql.TYPES)]
        if not skip_bad and any(row.problem is not None for row in types):
            raise self._bad_row("events", self.events)
        if not skip_bad and self.lists and self.engine.rows(sql.LIST_PROBLEMS):
            raise self._bad_row("lists", self.lists)
        return types

    def report(self, types: Sequence[_Types], target: Path) -> Report:
        """Count, write the evidence, and return the report."""
        if all(row.outcome is None for row in types):
            raise self._nothing(types)
        counting = self.counting
        self._step("counting")
        self.engine.table("counted", self._counted())
        totals = self.engine.rows(sql.TOTALS)
        slots = dict(self.engine.rows(sql.SLOTS))
        if not slots:
            raise self._none_left(types)
        times = [last for *_, last, _ in totals if last is not None]
        about = evidence_file.EvidenceMetadata.of(
            counting.behaviors, counting.impressions, max(times, default=None)
        )
        self._step("writing")
        rows = evidence_file.write(target, about, self.engine.batches(sql.EVIDENCE))
        good = {outcome: count for refused, outcome, _, count, *_ in totals if not refused}
        bad, others = Counter[str](), Counter[str]()
        for row in types:
            if row.outcome is None:
                others[row.type or ""] += row.events
            if row.problem is not None:
                bad[row.problem] += row.events
        again = sum(row.again for row in types if row.outcome is not None and row.problem is None)
        return Report(
            events=sum(row.events for row in types),
            impressions=sum(good.values()),
            outcomes={
                name: good.get(outcome, 0)
                for outcome, name in enumerate(counting.behaviors.names, start=SHOWN + 1)
            },
            rows=rows,
            ignored=dict(others.most_common(_MOST_TYPES)),
            bad=dict(bad),
            unlisted=sum(count for *_, why, count, _, _ in totals if why == sql.UNLISTED),
            unplaced=sum(count for *_, why, count, _, _ in totals if why == sql.UNPLACED),
            repeated=again + sum(repeated for *_, repeated in totals),
            applications=self._applications(types),
            warnings=self._warnings(types, slots),
        )

    def _counted(self) -> str:
        return sql.counted(self.counting)

    def _applications(self, types: Sequence[_Types]) -> list[Application]:
        return []

    def _warnings(self, types: Sequence[_Types], slots: Mapping[int, int]) -> list[str]:
        """Return what makes the evidence weaker than it seems."""
        found = []
        confirmed = any(row.outcome == SHOWN and row.problem is None for row in types)
        if not (confirmed or self.counting.served):
            found.append(
                f"no event is of type {self.counting.impression!r}, so every item that counts as "
                "shown was clicked, and nothing can be learned. Name the type of your impressions "
                "with --impression, or count lists with --lists FILE --impressions served"
            )
        if len(slots) == 1:
            name = slot_name(next(iter(slots)))
            found.append(
                f"all impressions are at {name}: the log cannot tell how far down users look, and "
                "the configured curve applies"
            )
        elif not slots.get(0):
            found.append(
                "no impression is at rank 1. Do the ranks of the log count from another number?"
            )
        return found

    def _step(self, name: str) -> None:
        if self.progress is not None:
            self.progress(next(self.steps), self.most_steps, name)

    def _bad_row(self, view: str, sources: Sequence[LogSource]) -> DataError:
        """Return what is wrong with the first bad row, and where: DuckDB only counts such rows.

        It judges the file again, with its rows numbered.
        """
        [(file,)] = self.engine.rows(f"SELECT min(file) FROM {view} WHERE problem IS NOT NULL")
        path = Path(file)
        source = next(source for source in sources if path in source.files)
        one = replace(source, files=(path,), columns={**source.columns, ROW: LogColumn()})
        self.engine.offer("numbered_0", one)
        if view == "lists":
            judged = sql.lists([one], "numbered")
        else:
            judged = sql.events([one], self.counting, "numbered")
        self.engine.view("numbered", judged)
        first = f"SELECT {ROW}, problem FROM numbered WHERE problem IS NOT NULL"
        [(number, name)] = self.engine.rows(f"{first} ORDER BY {ROW} LIMIT 1")
        line, row = next(islice(source.rows(path), number - 1, None))
        column = source.columns[name]
        called = f"column {column.name!r}" if column.path else f"field {name!r}"
        remedy = f"{REMEDIES[name]}. Fix it, or leave out such rows with --skip-bad."
        return wrong_value(path, line, called, row[name], remedy)

    def _none_left(self, types: Sequence[_Types]) -> DataError:
        problems = Counter[str]()
        for row in types:
            if row.outcome is not None:
                problems[row.problem or "list"] += row.events
        reasons = ", ".join(f"{ubi.REASONS.get(why, why)} ({n:,})" for why, n in problems.items())
        return DataError(
            f"every event that would count was left out: {reasons}",
            path=self.events[0].files[0],
            remedy="Name the columns with --map, or the files of lists with --lists.",
        )

    def _nothing(self, types: Sequence[_Types]) -> DataError:
        if not types:
            return empty_log(self.events[0].files[0])
        wanted = ", ".join(self.counting.types)
        there = ", ".join(repr(row.type) for row in types[:_MOST_TYPES])
        return DataError(
            f"no event counts: the types that count are {wanted}, but the log has {there}",
            path=self.events[0].files[0],
            remedy="Name yours with --impression and --behavior, or another column with --map "
            "type=COLUMN.",
        )


class _UbiJob(_Job):
    """An aggregation of User Behavior Insights, whose lists and ranks are found out first."""

    most_steps = 7

    def types(self, *, skip_bad: bool) -> list[_Types]:
        """Return how many events there are of each type, outcome, problem, application and so on.

        Bad rows are skipped.
        """
        for name, text, step in (
            ("acted", ubi.acted(self.events, self.counting), "reading events"),
            ("hits", ubi.hits(self.lists), "reading queries"),
            ("places", ubi.places(self.first_rank), "finding ranks"),
            ("texts", ubi.TEXTS, "finding queries"),
            ("resolved", ubi.RESOLVED, "placing events"),
        ):
            self._step(step)
            self.engine.table(name, text)
        self.engine.view("events", ubi.events(served=self.counting.served))
        return [_Types(*row) for row in self.engine.rows(ubi.TYPES)]

    def _counted(self) -> str:
        return sql.counted(replace(self.counting, impressions="confirmed", lists=False))

    def _applications(self, types: Sequence[_Types]) -> list[Application]:
        rows = dict[tuple[str, str], Application]()
        for each in sorted(types, key=lambda row: (row.application, row.convention or "")):
            problem = "type" if each.outcome is None else each.problem
            if problem is None and self.counting.served and each.convention != ubi.SERVED:
                problem = "list"
            ranks = each.convention or "" if problem is None else ""
            key = each.application, ranks
            row = rows.setdefault(key, Application(*key, ubi.EVIDENCE.get(ranks, ""), 0))
            if problem is None:
                rows[key] = replace(row, used=row.used + each.events)
            else:
                reason = ubi.REASONS[problem]
                row.dropped[reason] = row.dropped.get(reason, 0) + each.events
        return sorted(rows.values(), key=lambda row: (row.application, not row.ranks, row.ranks))


@contextmanager
def _named_line(sources: Sequence[LogSource]) -> Iterator[None]:
    """If DuckDB fails because a file is unreadable, raise an error that names the line."""
    try:
        yield
    except EngineError:
        for source in sources:
            for file in source.files:
                for _ in source.rows(file):  # raises at what is not of the file's format
                    pass
        raise


@contextmanager
def _folder(target: Path, spill: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield a temporary folder for what does not fit into memory."""
    if not target.parent.is_dir():
        raise ParameterError(f"{target}: folder not found: {target.parent}. Create it first.")
    parent = target.parent if spill is None else expanded(spill)
    make_private_folder(parent)
    with TemporaryDirectory(
        prefix=".ebrank-spill-", dir=parent, ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)
