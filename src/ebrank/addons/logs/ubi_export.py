"""`ebrank export --format ubi`: a store's log as User Behavior Insights.

The file has bulk lines for OpenSearch: a document of `ubi_queries` for each list, and one of
`ubi_events` for each counted impression and each event, with ordinals from 1. `ebrank aggregate
--ubi` counts what the store counted of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ebrank.addons.exporting import make_folder
from ebrank.environment.files import whole_file
from ebrank.service.ops.replay import watched
from ebrank.service.store.base import Progress, Store
from ebrank.service.store.records import EventEntry, RankingEntry

FILE = "ubi.ndjson"
QUERIES, EVENTS = "ubi_queries", "ubi_events"


async def export_ubi(
    store: Store,
    folder: Path,
    application: str = "ebrank",
    progress: Progress | None = None,
) -> dict[str, int]:
    """Write the log to a new folder; return how many documents each index gets.

    Retracted lists and events are left out.
    """
    make_folder(folder)
    documents, counts = _Documents(application), Counter[str]({QUERIES: 0, EVENTS: 0})
    with (
        whole_file(folder / FILE, private=True) as temporary,
        temporary.open("w", encoding="utf-8") as file,
    ):
        async for entry in watched(store, progress):
            for index, name, document in () if entry.retracted else documents.of(entry):
                action = {"index": {"_index": index, "_id": name}}
                file.write(f"{json.dumps(action)}\n{json.dumps(document, ensure_ascii=False)}\n")
                counts[index] += 1
    return dict(counts)


class _Documents:
    """Makes the documents of an entry, in the order of the log.

    An event cites the first list of its user and query, but its item may have come with a later
    one, which has a `query_id` of its own here: `_lists` remembers such items.
    """

    def __init__(self, application: str) -> None:
        self._application = application
        self._lists = dict[tuple[str, str], str]()

    def of(self, entry: RankingEntry | EventEntry) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield the index, the id and the content of each document."""
        if isinstance(entry, RankingEntry):
            yield QUERIES, entry.id, self._query(entry)
            for place, item in enumerate(entry.items):
                if entry.seen and entry.seen[place]:
                    continue  # it counts in the list that this one continues
                if entry.continues is not None:
                    self._lists[entry.continues, item] = entry.id
                rank = entry.offset + place + 1
                if entry.counted:
                    yield (
                        EVENTS,
                        f"{entry.id}:{rank}",
                        self._event("impression", entry.id, entry.query, item, rank, entry.time),
                    )
        else:
            kind, _, threshold = entry.type.partition(">=")
            value = float(threshold) if threshold and entry.value is None else entry.value
            cited = self._lists.get((entry.ranking_id, entry.item), entry.ranking_id)
            document = self._event(kind, cited, entry.query, entry.item, entry.rank, entry.time)
            if value is not None:
                document["event_attributes"]["value"] = value
            yield EVENTS, entry.event_id, document

    def _query(self, entry: RankingEntry) -> dict[str, Any]:
        explored = ",".join(str(place + 1) for place, was in enumerate(entry.explored) if was)
        experiment, arm, *_ = [*(entry.arm or "").split(":"), ""]
        attributes = {
            "ebrank.model": str(entry.model),
            "ebrank.explored": explored,
            "ebrank.experiment": experiment,
            "ebrank.arm": arm,
        }
        document = {
            "application": self._application,
            "query_id": entry.id,
            "query_response_id": entry.id,
            "user_query": entry.query,
            "query_attributes": {name: text for name, text in attributes.items() if text},
            "timestamp": moment(entry.time),
        }
        if entry.user is not None:
            document["client_id"] = entry.user
        if entry.offset == 0:  # else the items are not at the ranks of the array
            document["query_response_hit_ids"] = list(entry.items)
        return document

    def _event(
        self, action: str, cited: str, query: str, item: str, rank: int, time: float
    ) -> dict[str, Any]:
        return {
            "application": self._application,
            "action_name": action,
            "query_id": cited,
            "user_query": query,
            "timestamp": moment(time),
            "event_attributes": {
                "object": {"object_id": item, "object_id_field": "item"},
                "position": {"ordinal": rank},
            },
        }


def moment(time: float) -> str:
    """Return a time as OpenSearch's `strict_date_time` takes it: with milliseconds and an offset.

    >>> moment(1_700_000_000.5)
    '2023-11-14T22:13:20.500Z'
    """
    text = datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
