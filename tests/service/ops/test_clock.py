"""A clock that cannot be right stops a server before it dates anything."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from ebrank.service.ops.check import DAY, check_clock
from ebrank.service.store import open
from ebrank.testing.histories import new_items
from tests.cli.commands import refused

NOW = 1_800_000_000.0
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("last", "touched", "most_idle"),
    [
        (0.0, None, DAY),  # a new store
        (0.0, NOW - 9 * YEAR, DAY),  # nothing is dated yet
        (NOW, None, DAY),
        (NOW + DAY / 2, None, DAY),  # times stand still for a while
        (NOW - 9 * YEAR, NOW - DAY, 2 * DAY),  # idle, but something was saved yesterday
        (NOW - 9 * YEAR, None, 0.0),  # switched off
    ],
)
def test_a_clock_that_can_be_right_is_taken(
    last: float, touched: float | None, most_idle: float
) -> None:
    check_clock(NOW, last, touched, most_idle)


def written(folder: Path, moment: float) -> None:
    """Make a store whose log and files are of a moment."""

    async def session() -> None:
        async with open(str(folder)) as store:
            await store.items.put("q", new_items("a"), moment)

    asyncio.run(session())
    for file in folder.iterdir():
        os.utime(file, (moment, moment))


@pytest.mark.parametrize(
    ("years", "told", "remedy"),
    [(-2, "730 days after", "MAX_IDLE_SECONDS=0"), (2, "730 days before", "`ebrank repair STORE`")],
)
def test_a_server_does_not_start_with_such_a_clock(
    tmp_path: Path, years: int, told: str, remedy: str
) -> None:
    written(tmp_path / "store", time.time() + years * YEAR)
    for _ in range(2):  # what is refused is refused again, if a supervisor starts it again
        said = refused("serve", "--store", tmp_path / "store", "--port", "0")
        assert f"{told} the log's last entry" in said
        assert remedy in said
