"""Which columns of a log hold what: the names we use, or those that the caller maps to them.

A log has a row for each event. A file of lists has a row for each list that was served.

>>> FieldMap.of(["query=search_term", "lists.items=hits"]).events["query"]
'search_term'
>>> UBI.events["item"]
'event_attributes.object.object_id'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ebrank.errors import ParameterError

EVENT_FIELDS = ("ranking", "query", "item", "type", "rank", "value", "time")
LIST_FIELDS = ("ranking", "query", "items", "time")
_LISTS = "lists."


def _same(names: tuple[str, ...]) -> dict[str, str]:
    return {name: name for name in names}


@dataclass(frozen=True)
class FieldMap:
    """Columns by field, of events and of lists; a dot leads into a nested column.

    Attributes:
        named: the fields that the caller mapped, as `query` or `lists.query`; these must exist.
    """

    events: MappingProxyType[str, str] = field(
        default_factory=lambda: MappingProxyType(_same(EVENT_FIELDS))
    )
    lists: MappingProxyType[str, str] = field(
        default_factory=lambda: MappingProxyType(_same(LIST_FIELDS))
    )
    named: frozenset[str] = frozenset()

    @classmethod
    def of(cls, texts: Iterable[str], base: FieldMap | None = None) -> FieldMap:
        """Return the mapping that texts such as `query=search_term` add to another."""
        mapping = cls() if base is None else base
        for text in texts:
            mapping = mapping._with(text)
        return mapping

    def _with(self, text: str) -> FieldMap:
        name, equals, column = (part.strip() for part in text.partition("="))
        of_lists = name.startswith(_LISTS)
        fields = LIST_FIELDS if of_lists else EVENT_FIELDS
        key = name.removeprefix(_LISTS)
        if not equals or not column:
            raise ParameterError(f"{text!r} maps nothing; write it as in query=search_term")
        if key not in fields:
            close = difflib.get_close_matches(key, fields, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            kind = "lists" if of_lists else "events"
            raise ParameterError(
                f"{kind} have no field {key!r}, only {', '.join(fields)}.{hint} "
                "Write FIELD=COLUMN, or lists.FIELD=COLUMN for a file of lists"
            )
        changed = MappingProxyType({**(self.lists if of_lists else self.events), key: column})
        named = self.named | {name}
        if of_lists:
            return replace(self, lists=changed, named=named)
        return replace(self, events=changed, named=named)


UBI = FieldMap.of(
    [
        "ranking=query_id",
        "query=user_query",
        "item=event_attributes.object.object_id",
        "type=action_name",
        "rank=event_attributes.position.ordinal",
        "time=timestamp",
        "lists.ranking=query_id",
        "lists.query=user_query",
        "lists.items=query_response_hit_ids",
        "lists.time=timestamp",
    ]
)
"""User Behavior Insights: `ubi_events`, and `ubi_queries` as lists."""
UBI = replace(UBI, named=frozenset())
