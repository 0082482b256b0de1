"""Logs of User Behavior Insights: how ranks are counted, and what is left out and why."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal

import pytest

from ebrank.addons.logs import UBI, FieldMap, Report, aggregate
from ebrank.errors import DataError
from ebrank.evidence import Behaviors
from tests.addons.logs.replaying import Counts, file_counts, write

Document = dict[str, Any]
Convention = Literal["from 0", "from 1", "from 0, 0 as 1"]
BEGAN = 1_735_000_000_000


def event(action: str, query_id: str | None, item: str | None, **more: Any) -> Document:  # noqa: ANN401
    """Return an event, with an ordinal if one is given; other fields as they are."""
    ordinal = more.pop("ordinal", None)
    position = more.pop("position", {} if ordinal is None else {"ordinal": ordinal})
    thing = {} if item is None else {"object": {"object_id": item, "object_id_field": "sku"}}
    usual = {"application": "shop", "action_name": action, "query_id": query_id}
    attributes = {"event_attributes": {**thing, "position": position}}
    return usual | {"user_query": "tea", "timestamp": BEGAN} | attributes | more


def query(query_id: str, hits: Iterable[str] = (), **more: Any) -> Document:  # noqa: ANN401
    """Return a row of `ubi_queries`."""
    usual = {"application": "shop", "query_id": query_id, "user_query": "tea", "timestamp": BEGAN}
    return usual | {"query_response_hit_ids": list(hits)} | more


def bulk(documents: Iterable[Document]) -> str:
    """Return the lines of a bulk file."""
    lines = []
    for number, document in enumerate(documents):
        index = "ubi_events" if "action_name" in document else "ubi_queries"
        action = {"index": {"_index": index, "_id": str(number)}}
        lines += [json.dumps(action), json.dumps(document)]
    return "\n".join(lines) + "\n"


Aggregated = Callable[..., tuple[Report, Counts]]


@pytest.fixture
def counted(tmp_path: Path) -> Aggregated:
    """Aggregate documents, and return the report and the counts."""

    def run(documents: Iterable[Document], **options: Any) -> tuple[Report, Counts]:  # noqa: ANN401
        (tmp_path / "ubi.ndjson").write_text(bulk(documents))
        out = tmp_path / "evidence.parquet"
        out.unlink(missing_ok=True)
        report = aggregate([tmp_path / "ubi.ndjson"], out, fields=UBI, threads=1, **options)
        return report, file_counts(out)

    return run


def ranks(counts: Counts) -> dict[str, list[int]]:
    """Return the ranks at which each item was shown, if below 11."""
    found: dict[str, list[int]] = {}
    for (_, item, outcome, slot), (count, _) in sorted(counts.items()):
        found.setdefault(item, []).extend([slot + 1] * count * (outcome == 0))
    return found


def written(rank: int, convention: Convention) -> int:
    """Return the ordinal that a program writes for a rank."""
    return {"from 1": rank, "from 0": rank - 1, "from 0, 0 as 1": max(rank - 1, 1)}[convention]


def simulated(convention: Convention, *, served: bool) -> list[Document]:
    """Return a log of the same users, whatever the convention, in disorder and with repetitions."""
    rng = random.Random(11)
    documents: list[Document] = []
    for number in range(60):
        items = rng.sample("abcdefghijkl", rng.randint(2, 10))
        name, text, now = f"q{number}", f"tea {number % 7}", BEGAN + 100_000 * number
        if served:
            documents.append(query(name, items, user_query=text, timestamp=now))
        for rank, item in enumerate(items, start=1):
            time = now + 7 * rank
            told = {"ordinal": written(rank, convention), "user_query": text, "timestamp": time}
            shown = event("impression", name, item, **told)
            documents += [shown] * rng.choice([1, 1, 1, 2])
            if rng.random() < 0.3:
                documents.append(event("click", name, item, **told | {"timestamp": time + 5}))
    rng.shuffle(documents)
    return documents


@pytest.mark.parametrize("served", [False, True])
def test_all_conventions_give_the_same_counts(counted: Aggregated, served: bool) -> None:
    conventions: tuple[Convention, ...] = ("from 1", "from 0", "from 0, 0 as 1")
    results = [counted(simulated(each, served=served)) for each in conventions]
    assert results[0][1] == results[1][1] == results[2][1]
    for convention, (report, _) in zip(conventions, results, strict=True):
        used = {row.ranks: row.used for row in report.applications if row.used}
        assert list(used) == (["served list"] if served else [convention])
        assert sum(used.values()) == report.events
        assert report.repeated > 0


def test_conventions_may_differ_by_application_and_by_list(counted: Aggregated) -> None:
    log = [
        *(
            event("impression", "a1", item, ordinal=n, application="a")
            for n, item in enumerate("xyz")
        ),
        *(
            event("impression", "b1", item, ordinal=n, application="b")
            for n, item in zip((1, 2, 3), "xyz", strict=True)
        ),
        *(
            event("impression", "b2", item, ordinal=n, application="b", timestamp=BEGAN + at)
            for at, (n, item) in enumerate(zip((1, 1, 2), "xyz", strict=True))
        ),
    ]
    report, counts = counted(log)
    assert ranks(counts) == {"x": [1] * 3, "y": [2] * 3, "z": [3] * 3}
    assert {(row.application, row.ranks, row.used) for row in report.applications} == {
        ("a", "from 0", 3),
        ("b", "from 1", 3),
        ("b", "from 0, 0 as 1", 3),
    }
    assert ranks(counted(log, first_rank=0)[1])["z"] == [3, 3, 4]  # the caller knows better


def test_a_served_list_knows_the_rank_and_events_what_was_seen(counted: Aggregated) -> None:
    log = [
        query("q", "abc"),
        event("impression", "q", "b", ordinal=7),
        event("click", "q", "c", position={"xy": {"x": 1, "y": 2}}),
        event("impression", "q", "a", position={"x": 1, "y": 2}),
        event("impression", "q", "z", ordinal=5),  # in no list: its ordinal counts
    ]
    report, counts = counted(log)
    assert ranks(counts) == {"a": [1], "b": [2], "c": [3], "z": [5]}
    assert report.outcomes == {"click": 1}
    served, counts = counted(log, impressions="served")
    assert ranks(counts) == {"a": [1], "b": [2], "c": [3]}
    assert served.applications[-1].dropped == {"item in no served list": 1}
    for name in ("query_response_object_ids", "query_response_objects_ids"):
        older = query("q", query_response_hit_ids=None) | {name: ["a", "b", "c"]}
        assert ranks(counted([older, *log[1:]])[1])["c"] == [3]


def test_a_query_id_may_have_several_lists(counted: Aggregated) -> None:
    def at(seconds: int) -> dict[str, int]:
        return {"timestamp": BEGAN + 1000 * seconds}

    log = [
        query("q", "ab", query_response_id="r1", **at(0)),
        query("q", "ba", query_response_id="r2", **at(10)),
        event("impression", "q", "a", ordinal=1, **at(1)),
        event("impression", "q", "a", ordinal=2, **at(11)),
        event("click", "q", "a", **at(12)),
    ]
    _, counts = counted(log)
    assert ranks(counts) == {"a": [1, 2]}
    assert ("tea", "a", 1, 1) in counts  # the click counts in the list it came from
    split = [event("impression", "q", i, ordinal=n, **at(t)) for t, n, i in (
        (1, 1, "a"), (1, 2, "b"), (1, 3, "c"), (9, 1, "c"), (9, 2, "d"), (9, 3, "a"))]  # fmt: skip
    assert ranks(counted(split)[1]) == {"a": [1, 3], "b": [2], "c": [1, 3], "d": [2]}


def test_what_is_missing_is_looked_up_or_left_out_with_the_reason(counted: Aggregated) -> None:
    log = [
        query("q", user_query="green tea"),
        event("impression", "q", "a", ordinal=1, user_query=""),
        event("item_click", "q", "a", user_query=None, timestamp="2025-01-01T00:00:00.000Z"),
        event("impression", "q", 12, ordinal="2", timestamp="nonsense"),  # type: ignore[arg-type]
        event("impression", "p", "a", ordinal=1, user_query=None),
        event("impression", "q", None, ordinal=3),
        event("impression", None, "a", ordinal=3),
        event("impression", "q", "b", position={}),
        event("search", "q", None) | {"event_attributes": None},
    ]
    report, counts = counted(log)
    assert {key[0] for key in counts if key[1] == "a"} == {"green tea"}
    assert report.outcomes == {"click": 1}
    assert ranks(counts)["12"] == [2]
    assert report.applications[-1].dropped == {
        "action does not count": 1,
        "no list or ordinal": 1,
        "no object_id": 1,
        "no query_id": 1,
        "no user_query": 1,
    }


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ([], "the log is empty"),
        ([query("q")], "no column 'event_attributes.object.object_id'|the log is empty"),
        ([event("hover", "q", "a")], "no event counts: .*the log has 'hover'"),
        ([event("impression", "q", "a")], r"was left out: no list or ordinal \(1\)"),
    ],
)
def test_a_log_of_nothing_is_refused(counted: Aggregated, log: list[Document], why: str) -> None:
    with pytest.raises(DataError, match=why):
        counted(log)


def test_weak_evidence_is_called_so(counted: Aggregated) -> None:
    clicks = [event("click", f"q{n}", "a", ordinal=1 + n % 2) for n in range(4)]
    assert "every item that counts as shown was clicked" in counted(clicks)[0].warnings[0]
    one = [event("impression", f"q{n}", "a", ordinal=1) for n in range(4)]
    assert counted(one)[0].warnings[0].startswith("all impressions are at rank 1")
    deep = [event("impression", "q", "ab"[n - 2], ordinal=n) for n in (2, 3)]
    assert "no impression is at rank 1" in counted(deep)[0].warnings[0]


def test_separate_files_and_other_fields(tmp_path: Path) -> None:
    log = [event("impression", "q", "x", ordinal=1), event("buy", "q", "x")]
    for document in log:
        document["event_attributes"]["object"]["internal_id"] = "7"
        document["user_query"] = None
    events, queries = tmp_path / "events.ndjson", tmp_path / "queries.ndjson"
    write(events, log)
    write(queries, [query("q")])
    fields = FieldMap.of(["item=event_attributes.object.internal_id"], UBI)
    out, buys = tmp_path / "evidence.parquet", Behaviors.parse(["buy"])
    aggregate([events], out, lists=[queries], fields=fields, behaviors=buys)
    assert {key[:3] for key in file_counts(out)} == {("tea", "7", 0), ("tea", "7", 1)}


def test_the_log_that_opensearch_ships_needs_no_option(ubi_folder: Path, tmp_path: Path) -> None:
    log = ubi_folder / "ubi_queries_events.ndjson"
    report = aggregate([log], tmp_path / "evidence.parquet", fields=UBI)
    used = {(row.application, row.ranks): row.used for row in report.applications if row.used}
    assert used["esci_ubi_sample", "from 0"] == 1060  # all of its impressions and clicks
    assert set(used) == {
        ("Chorus", "served list"),
        ("Chorus", "from 1"),
        ("Chorus", "from 0, 0 as 1"),
        ("esci_ubi_sample", "from 0"),
    }
    dropped = [sum(row.dropped.values()) for row in report.applications]
    assert sum(used.values()) + sum(dropped) == report.events == 3448
    assert report.warnings == []
    counts = file_counts(tmp_path / "evidence.parquet")
    assert (
        sum(n for (*_, outcome, slot), (n, _) in counts.items() if (outcome, slot) == (0, 0)) > 200
    )
