"""Makes stores of this version, which later versions must migrate: lists, feedback, models, all.

`python -m tests.service.store.versions.make` writes `sqlite-N.db.gz`, `postgresql-N.sql` and what
is in them, `contents.json`, beside this file. A change of the schema keeps the files of the version
before it, which its own code has made.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import subprocess
import tempfile
from collections import Counter
from dataclasses import astuple
from itertools import compress
from pathlib import Path
from typing import Any

from ebrank.addons.postgresql.schema import POSTGRESQL
from ebrank.service.api import DeletionRequest, ItemIn, RankRequest
from ebrank.service.engine import Engine
from ebrank.service.ops.copying import copy_store
from ebrank.service.store import Store, open
from ebrank.service.store.records import RankingEntry
from ebrank.service.store.rows import count_rows
from ebrank.service.store.schema import SQLITE
from tests.postgres import postgres, programs
from tests.service.scenes import START, Clock, better, click, ids, items, settings

HERE = Path(__file__).parent
DAY = 86400.0
NOW = START + 2 * DAY
"""When the stores were last written to."""
RULES = settings(
    ranking={"window": 60.0},
    events={"behaviors": ["click=0.3", "purchase"], "negative": ["hide"]},
    store={"retention_seconds": DAY},
)


async def lived(store: Store) -> None:
    """Serve for two days: the first is rolled up, and some things are deleted."""
    clock = Clock()
    engine = await Engine.open(store, RULES, clock=clock, timer=clock)
    await engine.put_catalog([ItemIn(f"i{at}", {"price": at / 8}) for at in range(8)])
    for query in ("tea", "coffee", "grüner Tee 🍵", "gone"):
        await engine.put_items(query, items(6))
    for turn in range(24):
        clock.now = START + turn * DAY / 12
        query = ("tea", "coffee", "grüner Tee 🍵", "gone")[turn % 4]
        request = RankRequest(query, k=4, user=f"user {turn % 5}", offset=4 * (turn % 3 == 2))
        answer = await engine.rank(request)
        kinds = zip(ids(answer), ("click", "purchase", "hide"), strict=False)
        events = [click(f"{turn}-{kind}", answer.ranking_id, one, kind) for one, kind in kinds]
        await engine.feedback(events[: turn % 5])
        if turn == 20:
            await engine._roll_up()
    await engine.withdraw("coffee", "i5")
    await engine._adopt(better(), 0)
    clock.now = NOW
    await engine.delete(DeletionRequest("query", "gone"))
    await engine.delete(DeletionRequest("item", "i3"))
    await engine.delete(DeletionRequest("user", "user 2"))
    await engine.close()


async def contents(store: Store) -> dict[str, Any]:
    """Return how much of everything is in a store, as JSON has it."""
    queries = {}
    for query in await store.items.queries():
        states = await store.items.load(query), await store.items.snapshot(query)
        counts = [Counter[int](), Counter[int]()]
        for state, count in zip(states, counts, strict=True):
            assert state is not None
            for _, outcome, _, amount, _ in count_rows(state):
                count[outcome] += int(amount)
        assert states[0] is not None
        queries[query] = {
            "candidates": list(compress(states[0].ids, states[0].active)),
            "features": float(states[0].features[states[0].active].sum()),
            "counts": sorted(counts[0].items()),
            "snapshot": sorted(counts[1].items()),
        }
    entries = [entry async for entry in store.log.entries()]
    found = {
        "queries": queries,
        "catalog": {name: row.tolist() async for name, row in store.catalog.entries()},
        "rankings": sum(isinstance(entry, RankingEntry) for entry in entries),
        "users": len({entry.user for entry in entries if isinstance(entry, RankingEntry)}),
        "entries": len(entries),
        "models": [record.version for record in await store.models.all()],
        "active": await store.models.active(),
        "deletions": [astuple(proof)[3:] for proof in await store.deletions.all()],
        "settings": sorted(await store.meta.all()),
        "last_time": await store.log.last_time(),
    }
    whole: dict[str, Any] = json.loads(json.dumps(found))
    return whole


def dumped(url: str) -> str:
    """Return the tables of a database as SQL."""
    options = ("--inserts", "--no-owner", "--no-privileges", "--schema", "ebrank")
    done = subprocess.run(
        [programs() / "pg_dump", *options, url.partition("&schema")[0]],
        capture_output=True,
        text=True,
        check=True,
    )
    noise = re.compile(r"--|SET (?!check_function)|$|\\")
    return "".join(f"{line}\n" for line in done.stdout.splitlines() if not noise.match(line))


async def made() -> None:
    """Write the files."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/store"
        async with open(place) as store:
            await lived(store)
            await store.deletions.purge()
            await store.backup(Path(folder) / "log.db")
        data = (Path(folder) / "log.db").read_bytes()
        (HERE / f"sqlite-{SQLITE.version}.db.gz").write_bytes(gzip.compress(data, mtime=0))
        async with open(place, "read") as store:
            found = await contents(store)
        text = json.dumps(found, indent=1)
        (HERE / "contents.json").write_text(f"{text}\n", encoding="utf-8")
        with postgres(fsync=False) as database:
            await copy_store(place, database.url())
            sql = dumped(database.url())
        (HERE / f"postgresql-{POSTGRESQL.version}.sql").write_text(sql, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(made())
