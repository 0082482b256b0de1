"""Which columns of a log hold what: the names we use, or those that the caller maps to them.

A log has a row for each event. A file of lists has a row for each list that was served.

>>> FieldMap.of(["query=search_term", "lists.items=hits"]).events["query"]
'search_term'
>>> UBI.events["item"]
'event_attributes.object.object_id'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ebrank.errors import ParameterError

EVENT_FIELDS = ("ranking", "query", "item", "type", "rank", "value", "time")
LIST_FIELDS = ("ranking", "query", "items", "time")
CLICKED = "clicked"
"""The field that says whether an item was clicked, in a log with a row for each item shown."""
ROW = "numbered_row"
"""The field of a row's number in its file, if it is asked for."""
REMEDIES: Mapping[str, str] = {
    "ranking": "A row needs the id of the list",
    "query": "A row needs its query",
    "item": "A row needs its item",
    "items": "Write the items of a list as an array of texts, in Parquet or NDJSON",
    "rank": "Ranks are whole numbers from 1 (--first-rank 0 if the log counts from 0), and an "
    "impression needs one",
    "value": "Behaviors with a threshold need a number",
    "time": "Times are seconds since 1970, or as in 2026-11-15T20:00:00Z",
    CLICKED: "Write 1 or true where an item was clicked, and 0, false or nothing where not",
}
"""What to do if a field is missing, or holds something else."""
_LISTS = "lists."
_OWN_NAMES = {name: name for name in EVENT_FIELDS} | {_LISTS + name: name for name in LIST_FIELDS}


@dataclass(frozen=True)
class FieldMap:
    """Columns by field, of events and, as in `lists.query`, of lists; a dot leads into nested ones.

    Attributes:
        columns: the column of each field.
        named: the fields that the caller mapped; these must exist.
    """

    columns: Mapping[str, str] = field(default_factory=lambda: MappingProxyType(_OWN_NAMES))
    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, texts: Iterable[str], base: FieldMap | None = None) -> FieldMap:
        """Return the mapping that texts such as `query=search_term` add to another."""
        base = base or cls()
        mapped = {}
        for text in texts:
            name, _, column = (part.strip() for part in text.partition("="))
            if not column:
                raise ParameterError(f"{text!r} maps nothing; write it as in query=search_term")
            if name not in base.columns:
                close = difflib.get_close_matches(name, base.columns, n=1)
                hint = f" Did you mean {close[0]}?" if close else ""
                raise ParameterError(
                    f"no field {name!r}, only {', '.join(base.columns)}.{hint} Write FIELD=COLUMN, "
                    "or lists.FIELD=COLUMN for a file of lists"
                )
            mapped[name] = column
        return cls(MappingProxyType({**base.columns, **mapped}), base.named | mapped.keys())

    @property
    def events(self) -> dict[str, str]:
        """The column of each field of events."""
        return {name: column for name, column in self.columns.items() if "." not in name}

    @property
    def lists(self) -> dict[str, str]:
        """The column of each field of lists."""
        names = self.columns.items()
        return {name[len(_LISTS) :]: column for name, column in names if name.startswith(_LISTS)}

    @property
    def ubi(self) -> bool:
        """Whether the log is one of User Behavior Insights."""
        return _LISTS + "response" in self.columns

    def required(self, view: str, needed: set[str]) -> set[str]:
        """Return the fields of events or of lists that must exist: needed, or mapped."""
        prefix, fields = ("", self.events) if view == "events" else (_LISTS, self.lists)
        return needed | {name for name in fields if prefix + name in self.named}


UBI = FieldMap(
    MappingProxyType(
        {
            "ranking": "query_id",
            "query": "user_query",
            "item": "event_attributes.object.object_id",
            "type": "action_name",
            "rank": "event_attributes.position.ordinal",
            "value": "event_attributes.value",
            "time": "timestamp",
            "application": "application",
            "lists.ranking": "query_id",
            "lists.query": "user_query",
            "lists.items": "query_response_hit_ids",
            "lists.time": "timestamp",
            "lists.response": "query_response_id",
            "lists.type": "action_name",
        }
    )
)
"""User Behavior Insights: events, and queries as lists, which have no action."""
UBI_ITEMS = ("query_response_object_ids", "query_response_objects_ids")
"""What older versions call `query_response_hit_ids`."""
