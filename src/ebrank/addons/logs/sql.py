"""The SQL that turns events into evidence.

The engine provides each source as a view, `events_0`, `lists_0` and so on, with a column for each
field; their types differ from file to file. `events` gives all of them one form and says what is
wrong with a row, `counted` adds up, `evidence` sorts.

An impression is an item in a list. It counts once, in the slot of its rank, with one outcome: the
most valuable behavior, or none after a negative one. Counts are whole numbers and times minima, so
no result depends on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ebrank.addons.logs.fields import CLICKED, ROW
from ebrank.addons.logs.files import LogColumn, LogSource
from ebrank.errors import ParameterError
from ebrank.evidence.behaviors import CLICKS, NEGATIVE, SHOWN, Behaviors
from ebrank.evidence.slots import FIRST_RANKS

Impressions: TypeAlias = Literal["served", "confirmed"]

UNLISTED, UNPLACED = -2, -1
"""Slots of what does not count: no list has the item; its rank is unknown."""

_MICROSECONDS = 1e6
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From which number on a time is in nano-, micro- or milliseconds; below it is in seconds."""


@dataclass(frozen=True)
class Counting:
    """What counts, and as what.

    Attributes:
        behaviors: types of events that count.
        impression: the type of event that confirms an impression.
        impressions: whether an item counts as shown when its list was served, or when an event
            confirms it: an impression, or a behavior.
        lists: whether there are files of lists, which then say the query of a list.
        first_rank: how the log calls the first rank, 0 or 1.
        single: whether each row is an impression of its own, because the log names no lists.
    """

    behaviors: Behaviors = CLICKS
    impression: str = "impression"
    impressions: Impressions = "confirmed"
    lists: bool = False
    first_rank: int = 1
    single: bool = False

    def __post_init__(self) -> None:
        """Raise if the SQL cannot express it."""
        for name in self.types:
            if "'" in name or "\\" in name or not name:
                raise ParameterError(f"{name!r} cannot be a type of event: no quotes, no backslash")
        if self.impression in self.types[1:]:
            raise ParameterError(f"{self.impression!r} is either an impression or a behavior")
        if self.served and not self.lists:
            raise ParameterError(
                "impressions that count when served need the lists: name their files with --lists"
            )

    @property
    def served(self) -> bool:
        """Whether the lists say what was shown."""
        return self.impressions == "served"

    @property
    def types(self) -> tuple[str, ...]:
        """The types of events that may count, impressions first."""
        behaviors = dict.fromkeys(behavior.type for behavior in self.behaviors.all)
        return self.impression, *behaviors, *self.behaviors.negative

    @property
    def valued(self) -> tuple[str, ...]:
        """The types of events that need a value."""
        behaviors = self.behaviors.all
        free = {behavior.type for behavior in behaviors if behavior.at_least is None}
        return tuple(dict.fromkeys(each.type for each in behaviors if each.type not in free))


# --- one form for all sources --------------------------------------------------------------------


def events(sources: Sequence[LogSource], counting: Counting, view: str = "events") -> str:
    """Return the text of the view `events`: typed columns, an outcome, and what is wrong.

    `problem` names the missing or invalid field of a row that would count.
    """
    clicked = any(CLICKED in source.columns for source in sources)
    always = [("type IS NULL", CLICKED)] if clicked else []
    always += [(f"type = '{kind}' AND value IS NULL", "value") for kind in counting.valued]
    needed = {"ranking": not counting.single, "item": True, "query": not counting.lists}
    if_it_counts = [(f"{name} IS NULL", name) for name, is_needed in needed.items() if is_needed]
    if not counting.served:
        if_it_counts += [
            ("rank_given = 1 AND (rank IS NULL OR rank < 1)", "rank"),
            (f"rank_given = 0 AND outcome = {SHOWN}", "rank"),
        ]
    if_it_counts += [(f"{name}_given = 1 AND {name} IS NULL", name) for name in ("time", "value")]
    return f"""
        SELECT *, CASE {_cases(always)} WHEN outcome IS NULL THEN NULL {_cases(if_it_counts)}
        END AS problem
        FROM (SELECT *, {outcome_of(counting)} AS outcome FROM (
            {union(view, sources, lambda name, source: typed(name, source.columns, counting))}
        ) AS typed) AS judged"""


def _cases(problems: Iterable[tuple[str, str]]) -> str:
    """Return the cases that give the name of a field, on conditions."""
    return " ".join(f"WHEN {condition} THEN '{field}'" for condition, field in problems)


def union(view: str, sources: Sequence[LogSource], of_one: Callable[[str, LogSource], str]) -> str:
    """Return the rows of all sources, given the text for the view of one."""
    return " UNION ALL ".join(
        of_one(f"{view}_{number}", source) for number, source in enumerate(sources)
    )


def outcome_of(counting: Counting) -> str:
    """Return the outcome of an event, the most valuable first; NULL if it does not count."""
    cases = [f"WHEN type = '{counting.impression}' THEN {SHOWN}"]
    cases += [f"WHEN type = '{kind}' THEN {NEGATIVE}" for kind in counting.behaviors.negative]
    for behavior in reversed(counting.behaviors.all):
        least = behavior.at_least
        enough = "" if least is None else f" AND value >= CAST('{least!r}' AS DOUBLE)"
        outcome = counting.behaviors.outcome(behavior.name)
        cases.append(f"WHEN type = '{behavior.type}'{enough} THEN {outcome}")
    return f"CASE {' '.join(cases)} END"


def lists(sources: Sequence[LogSource], view: str = "lists") -> str:
    """Return the text of the view `lists`: a row for each item, with its rank, and a problem."""
    return f"""
        SELECT *, CASE {_cases([("ranking IS NULL", "ranking"), ("query IS NULL", "query")])}
        END AS problem FROM ({union(view, sources, listed)}) AS typed"""


def listed(view: str, source: LogSource, extra: Sequence[str] = ()) -> str:
    """Return the items of lists of a source with typed columns, and extra ones as texts."""
    columns = _texts("ranking", "query", "item", *extra)
    return f"""
        SELECT {columns}, CAST(rank AS BIGINT) AS rank,
            {as_time(source.columns["time"])} AS time, file{_row(source.columns)}
        FROM {view}"""


def typed(
    view: str, columns: Mapping[str, LogColumn], counting: Counting, extra: Sequence[str] = ()
) -> str:
    """Return the rows of a source with typed columns, and extra ones as texts."""
    kind = _clicked(counting) if CLICKED in columns else as_text("type")
    given = ", ".join(
        f"CASE WHEN {as_text(name)} IS NULL THEN 0 ELSE 1 END AS {name}_given"
        for name in ("rank", "value", "time")
    )
    return f"""
        SELECT {_texts("ranking", "query", "item", *extra)}, {kind} AS type,
            {_rank(columns["rank"], counting.first_rank)} AS rank,
            {_number("value", columns["value"])} AS value, {as_time(columns["time"])} AS time,
            {given}, file{_row(columns)}
        FROM {view}"""


def _clicked(counting: Counting) -> str:
    """Return the type that a column of clicks stands for; NULL if it says neither yes nor no."""
    text = f"lower(trim(CAST({CLICKED} AS STRING)))"
    no = "'', '0', '0.0', 'false', 'f', 'no', 'n', 'nan'"
    return (
        f"CASE WHEN {text} IS NULL OR {text} IN ({no}) THEN '{counting.impression}' "
        f"WHEN {text} IN ('true', 't', 'yes', 'y') OR translate({text}, '0123456789.', '') = '' "
        f"AND TRY_CAST({text} AS DOUBLE) > 0 THEN '{counting.types[1]}' END"
    )


def _row(columns: Mapping[str, LogColumn]) -> str:
    """Return the column of numbers, which only a file with a bad row has."""
    return f", {ROW}" if ROW in columns else ""


def _texts(*names: str) -> str:
    return ", ".join(f"{as_text(name)} AS {name}" for name in names)


def as_text(name: str) -> str:
    """Return a column as text; what is empty is missing."""
    return f"nullif(CAST({name} AS STRING), '')"


def _rank(column: LogColumn, first: int) -> str:
    """Return a whole number below a billion, counted from 1; anything else is NULL."""
    if column.kind == "whole":
        number = "CAST(rank AS BIGINT)"
    elif column.kind == "float":
        number = "CASE WHEN rank = floor(rank) AND abs(rank) < 1e9 THEN CAST(rank AS BIGINT) END"
    else:
        digits = "regexp_replace(trim(CAST(rank AS STRING)), '[.]0$', '')"
        number = (
            f"CASE WHEN length({digits}) BETWEEN 1 AND 9 "
            f"AND translate({digits}, '0123456789', '') = '' THEN TRY_CAST({digits} AS BIGINT) END"
        )
    return number if first == 1 else f"({number}) + {1 - first}"


def _number(name: str, column: LogColumn) -> str:
    """Return a finite number; anything else is NULL."""
    if column.kind == "text":
        text = f"trim(CAST({name} AS STRING))"
        given = f"TRY_CAST({text} AS DOUBLE)"
        given = f"CASE WHEN translate({text}, '0123456789.+-eE', '') = '' THEN {given} END"
    else:
        given = f"CAST({name} AS DOUBLE)"
    return f"CASE WHEN abs({given}) <= 1.7e308 THEN {given} END"


def as_time(column: LogColumn) -> str:
    """Return seconds since 1970; NULL where it is not a time."""
    if column.kind in ("whole", "float", "nanoseconds"):
        return _seconds(f"({_number('time', column)})")
    if column.kind == "time":
        return _moment("CAST(time AS TIMESTAMPTZ)")
    text = "trim(CAST(time AS STRING))"
    return (
        f"CASE WHEN translate({text}, '0123456789.', '') = '' "
        f"THEN {_seconds(f'TRY_CAST({text} AS DOUBLE)')} "
        f"WHEN {text} LIKE '____-__-__%' THEN {_moment(f'TRY_CAST({text} AS TIMESTAMPTZ)')} END"
    )


def _seconds(number: str) -> str:
    cases = " ".join(f"WHEN {number} >= {least:g} THEN {number} / {by:g}" for least, by in _UNITS)
    return f"CASE {cases} ELSE {number} END"


def _moment(moment: str) -> str:
    return f"CAST(epoch_us({moment}) AS DOUBLE) / {_MICROSECONDS:g}"


# --- adding up -----------------------------------------------------------------------------------

TYPES = """
    SELECT type, outcome, problem, count(*) AS events FROM events
    GROUP BY type, outcome, problem ORDER BY events DESC, type, problem"""
"""How many events there are of each type, and what is wrong with them."""

LIST_PROBLEMS = "SELECT problem, count(*) FROM lists WHERE problem IS NOT NULL GROUP BY problem"


def counted(counting: Counting) -> str:
    """Return the text of the table `counted`: impressions by query, item, final outcome and slot.

    What does not count has no query and no item, and the slot `UNLISTED` or `UNPLACED`.
    """
    return f"""
        WITH impressions AS ({_impressions(counting)}),
        placed AS (
            SELECT query, item, outcome, time, repeated, CASE
                WHEN listed = 0 THEN {UNLISTED} WHEN rank IS NULL THEN {UNPLACED} {_slots("rank")}
            END AS slot
            FROM impressions)
        SELECT CASE WHEN slot >= 0 THEN query END AS query,
            CASE WHEN slot >= 0 THEN item END AS item,
            CAST(outcome AS BIGINT) AS outcome, CAST(slot AS BIGINT) AS slot,
            count(*) AS count, min(time) AS first, max(time) AS last,
            sum(repeated) AS repeated
        FROM placed GROUP BY 1, 2, 3, 4"""


def _impressions(counting: Counting) -> str:
    """Return an impression for each item of a list: its best outcome, its rank and its time."""
    good = "FROM events WHERE outcome IS NOT NULL AND problem IS NULL"
    if counting.single:
        return f"SELECT query, item, outcome, rank, time, 1 AS listed, 0 AS repeated {good}"
    best = f"CASE WHEN min(outcome) = {NEGATIVE} THEN {SHOWN} ELSE max(outcome) END AS outcome"
    if counting.served:
        return f"""
            SELECT min(query) AS query, item, {best}, min(rank) AS rank,
                min(CASE WHEN listed = 1 THEN time END) AS time,
                max(listed) AS listed, 0 AS repeated
            FROM (
                SELECT ranking, query, item, rank, time, {SHOWN} AS outcome, 1 AS listed
                FROM lists WHERE item IS NOT NULL AND problem IS NULL
                UNION ALL
                SELECT ranking, CAST(NULL AS STRING), item, CAST(NULL AS BIGINT), time, outcome, 0
                {good}) AS merged
            GROUP BY ranking, item"""
    kinds = " - ".join(
        f"max(CASE WHEN outcome = {kind} THEN 1 ELSE 0 END)"
        for kind in range(NEGATIVE, counting.behaviors.outcomes)
    )
    repeated = f"count(*) - {kinds} AS repeated"
    ranks = f"coalesce(min(CASE WHEN outcome = {SHOWN} THEN rank END), min(rank)) AS rank"
    if counting.lists:
        return f"""
            SELECT min(named.query) AS query, item, {best}, {ranks},
                min(time) AS time, {repeated},
                max(CASE WHEN named.ranking IS NULL THEN 0 ELSE 1 END) AS listed
            FROM (SELECT ranking, item, outcome, rank, time {good}) AS good
            LEFT JOIN (
                SELECT ranking, min(query) AS query FROM lists
                WHERE problem IS NULL GROUP BY ranking) AS named
            ON good.ranking = named.ranking
            GROUP BY good.ranking, item"""
    return f"""
        SELECT query, item, {best}, {ranks}, min(time) AS time, 1 AS listed, {repeated}
        {good} GROUP BY query, ranking, item"""


def _slots(rank: str) -> str:
    """Return the cases that give the slot of a rank, which is 1 or more.

    >>> _slots("r")
    'WHEN r < 12 THEN r - 1 WHEN r < 16 THEN 10 ... WHEN r < 301 THEN 14 ELSE 15'
    """
    single = next(slot for slot, first in enumerate(FIRST_RANKS) if first != slot + 1)
    bands = " ".join(
        f"WHEN {rank} < {first} THEN {slot - 1}"
        for slot, first in enumerate(FIRST_RANKS)
        if slot >= single
    )
    return f"WHEN {rank} < {single + 1} THEN {rank} - 1 {bands} ELSE {len(FIRST_RANKS) - 1}"


EVIDENCE = f"""
    SELECT query, item, CAST({SHOWN} AS BIGINT) AS outcome, slot,
        CAST(sum(count) AS BIGINT) AS count, min(first) AS first
    FROM counted WHERE slot >= 0 GROUP BY query, item, slot
    UNION ALL
    SELECT query, item, outcome, slot, count, first
    FROM counted WHERE slot >= 0 AND outcome > {SHOWN}
    ORDER BY query, item, outcome, slot"""
"""Rows of evidence: every impression is shown, and has its behavior as a second outcome."""

TOTALS = """
    SELECT slot < 0 AS refused, outcome, CASE WHEN slot < 0 THEN slot END AS why,
        CAST(sum(count) AS BIGINT), max(last), CAST(sum(repeated) AS BIGINT)
    FROM counted GROUP BY 1, 2, 3"""
"""How many impressions there are of each outcome, how many do not count, the latest time, and how
many events say again what others said."""

SLOTS = """
    SELECT slot, CAST(sum(count) AS BIGINT) FROM counted WHERE slot >= 0 GROUP BY slot"""
"""How many impressions there are in each slot."""
