"""The SQL that resolves a log of User Behavior Insights.

A row with an `action_name` is an event, any other row with a `query_id` a query; the action lines
of a bulk file have neither. An event says which item a user saw or clicked, but often not where:

- The rank comes from the served list, if a query row has one with the item. A `query_id` may have
  several lists, one for each `query_response_id`: an event belongs to the latest one before it.
- Otherwise it comes from `position.ordinal`, about which the specification does not say whether it
  counts from 0. If an application ever wrote 0, all its ordinals count from 0; else from 1.
- Chorus, UBI's reference shop, counts from 0 since February 2025, but writes 0 as 1. Such a list
  has two items at 1, and none at the rank of its length. The earlier one is the first.
- Two items at the same rank of a `query_id` were in different lists, the earlier one in the first.
- A missing `user_query` is that of the list, or else of the query row or of another event.

An event without an item, a list or a rank is left out, and counted with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from ebrank.addons.logs import sql
from ebrank.addons.logs.files import LogSource
from ebrank.evidence.behaviors import SHOWN

SERVED, FAULTY = "served list", "from 0, 0 as 1"
FROM = ("from 0", "from 1")
EVIDENCE = {
    SERVED: "a query row has hit ids",
    FAULTY: "two at 1, none at end",
    FROM[0]: "an ordinal is 0",
    FROM[1]: "no ordinal is 0",
}
"""What tells how ranks are counted."""
REASONS = {
    "type": "action does not count",
    "ranking": "no query_id",
    "item": "no object_id",
    "rank": "no list or ordinal",
    "query": "no user_query",
    "list": "item in no served list",
}
"""Why an event is left out."""
_SAME = {"item_click": "click"}
"""Actions that some programs write instead of others."""


def acted(sources: Sequence[LogSource], counting: sql.Counting, view: str = "events") -> str:
    """Return the text of the table `acted`: events, with how often each is there."""

    def of_one(name: str, source: LogSource) -> str:
        return sql.typed(name, source.columns, counting, extra=["application"])

    same = " ".join(
        f"WHEN type = '{other}' THEN '{name}'"
        for other, name in _SAME.items()
        if other not in counting.types and name in counting.types
    )
    kind = f"CASE {same} ELSE type END" if same else "type"
    kept = ", ".join(
        f"CASE WHEN outcome IS NOT NULL THEN {name} END AS {name}"
        for name in ("ranking", "query", "item", "rank", "time")
    )
    return f"""
        SELECT application, type, outcome, ranking, query, item, rank, time, count(*) AS events
        FROM (
            SELECT coalesce(application, '') AS application, type, outcome, {kept}
            FROM (
                SELECT *, {sql.outcome_of(counting)} AS outcome FROM (
                    SELECT ranking, query, item, rank, time, value, application, {kind} AS type
                    FROM ({sql.union(view, sources, of_one)}) AS typed
                    WHERE type IS NOT NULL) AS named) AS judged) AS short
        GROUP BY application, type, outcome, ranking, query, item, rank, time"""


def hits(sources: Sequence[LogSource], view: str = "lists") -> str:
    """Return the text of the table `hits`: the items of served lists, and the queries of others."""

    def of_one(name: str, source: LogSource) -> str:
        return sql.listed(name, source, extra=["response", "type"])

    return f"""
        SELECT ranking, list, query, item, min(rank) AS rank, min(time) AS time
        FROM (SELECT *, coalesce(response, CAST(time AS STRING), '') AS list
            FROM ({sql.union(view, sources, of_one)}) AS typed
            WHERE ranking IS NOT NULL AND type IS NULL) AS named
        GROUP BY ranking, list, query, item"""


def places(first_rank: int | None) -> str:
    """Return the text of the table `places`: where each item of a `query_id` was, and when.

    Args:
        first_rank: how the log calls the first rank; None to find out.
    """
    base = "CASE WHEN min(rank) = 0 THEN 0 ELSE 1 END" if first_rank is None else f"{first_rank}"
    whole = "OVER (PARTITION BY application, ranking)"
    faulty = f"""base = 1 AND max(rank) {whole} < count(*) {whole}
        AND max(CASE WHEN rank = 1 THEN claims ELSE 0 END) {whole} = 2
        AND max(CASE WHEN rank > 1 THEN claims ELSE 0 END) {whole} < 2"""
    return f"""
        WITH bases AS (
            SELECT application, {base} AS base
            FROM acted WHERE outcome IS NOT NULL AND rank >= 0 GROUP BY application),
        served AS (SELECT DISTINCT ranking, item FROM hits WHERE item IS NOT NULL),
        unserved AS (
            SELECT acted.application, acted.ranking, acted.item, acted.rank + 1 - base AS rank,
                base, acted.time, acted.outcome,
                min(CASE WHEN acted.outcome = {SHOWN} THEN 0 ELSE 1 END)
                    OVER (PARTITION BY acted.ranking, acted.item) AS unconfirmed
            FROM acted JOIN bases ON acted.application = bases.application
            LEFT JOIN served ON acted.ranking = served.ranking AND acted.item = served.item
            WHERE acted.outcome IS NOT NULL AND acted.rank >= base
                AND acted.ranking IS NOT NULL AND acted.item IS NOT NULL AND served.item IS NULL),
        claimed AS (
            SELECT application, ranking, item, rank, base, min(time) AS time
            FROM unserved WHERE outcome = {SHOWN} OR unconfirmed = 1
            GROUP BY application, ranking, item, rank, base),
        counted AS (
            SELECT *, count(*) OVER (PARTITION BY application, ranking, rank) AS claims,
                row_number() OVER (
                    PARTITION BY application, ranking, rank ORDER BY time NULLS LAST, item) AS claim
            FROM claimed),
        judged AS (
            SELECT *, CASE WHEN {"FALSE" if first_rank is not None else faulty}
                THEN 1 ELSE 0 END AS faulty FROM counted)
        SELECT ranking, item, list, rank, time, query, '{SERVED}' AS convention
        FROM hits WHERE item IS NOT NULL
        UNION ALL
        SELECT ranking, item, CASE WHEN faulty = 1 THEN '1' ELSE CAST(claim AS STRING) END,
            CASE WHEN faulty = 0 THEN rank WHEN rank = 1 THEN claim ELSE rank + 1 END, time,
            CAST(NULL AS STRING), CASE WHEN faulty = 1 THEN '{FAULTY}'
                WHEN base = 0 THEN '{FROM[0]}' ELSE '{FROM[1]}' END
        FROM judged"""


TEXTS = """
    SELECT ranking, query FROM (
        SELECT ranking, query, row_number() OVER (
            PARTITION BY ranking ORDER BY source, time DESC NULLS LAST, query) AS place
        FROM (
            SELECT 0 AS source, ranking, query, time FROM hits WHERE query IS NOT NULL
            UNION ALL
            SELECT 1 AS source, ranking, query, time FROM acted
            WHERE query IS NOT NULL AND ranking IS NOT NULL) AS named) AS placed
    WHERE place = 1"""
"""The table `texts`: what users searched for, by `query_id`."""

RESOLVED = """
    SELECT application, type, outcome, events, item, time, rank, convention, query,
        ranking || ' ' || coalesce(list, '') AS ranking,
        CASE WHEN outcome IS NULL THEN NULL WHEN ranking IS NULL THEN 'ranking'
            WHEN item IS NULL THEN 'item' WHEN rank IS NULL THEN 'rank'
            WHEN query IS NULL THEN 'query' END AS problem
    FROM (
        SELECT acted.application, acted.type, acted.outcome, acted.events, acted.item, acted.time,
            acted.ranking, places.rank, places.convention, places.list,
            coalesce(acted.query, places.query, texts.query) AS query,
            row_number() OVER (
                PARTITION BY acted.application, acted.type, acted.outcome, acted.ranking,
                    acted.query, acted.item, acted.rank, acted.time
                ORDER BY CASE WHEN places.time <= acted.time THEN 0 ELSE 1 END,
                    CASE WHEN places.time <= acted.time THEN -places.time ELSE places.time END
                    NULLS LAST, places.rank, places.list) AS choice
        FROM acted
        LEFT JOIN places ON acted.ranking = places.ranking AND acted.item = places.item
        LEFT JOIN texts ON acted.ranking = texts.ranking) AS placed
    WHERE choice = 1"""
"""The table `resolved`: events with their list, rank and query, or what is missing if it counts."""


def events(*, served: bool) -> str:
    """Return the text of the view `events`, as `sql.counted` takes it.

    Args:
        served: whether all items of a served list count as shown, and nothing else does.
    """
    if not served:
        return """
            SELECT query, ranking, item, rank, outcome, time, problem FROM resolved
            WHERE outcome IS NOT NULL"""
    return f"""
        SELECT query, ranking, item, rank, outcome, CAST(NULL AS DOUBLE) AS time, problem
        FROM resolved WHERE outcome IS NOT NULL AND convention = '{SERVED}'
        UNION ALL
        SELECT coalesce(hits.query, texts.query), hits.ranking || ' ' || list, item, rank, {SHOWN},
            time, CASE WHEN coalesce(hits.query, texts.query) IS NULL THEN 'query' END
        FROM hits LEFT JOIN texts ON hits.ranking = texts.ranking WHERE item IS NOT NULL"""


TYPES = """
    SELECT type, outcome, problem, CAST(sum(events) AS BIGINT) AS events, application, convention,
        CAST(sum(events - 1) AS BIGINT) AS again
    FROM resolved GROUP BY application, type, outcome, convention, problem
    ORDER BY events DESC, application, type, convention, problem"""
"""How many events there are of each type, outcome, problem, application and convention of ranks."""
