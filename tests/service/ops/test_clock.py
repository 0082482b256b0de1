"""A clock that cannot be right stops a server before it dates anything."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from ebrank.service.ops.clock import DAY, ClockError, check
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
    check(NOW, last, touched, most_idle)


def test_a_clock_far_ahead_of_log_and_files_is_refused() -> None:
    message = r"2027-01-15, 1,825 days after .* of 2022-01-16\. .*MAX_IDLE_SECONDS=0$"
    with pytest.raises(ClockError, match=message):
        check(NOW, NOW - 6 * YEAR, NOW - 5 * YEAR, YEAR)


def test_a_log_far_ahead_of_the_clock_is_refused() -> None:
    with pytest.raises(ClockError, match=r"730 days before .*2029-01-14.*`ebrank repair STORE`"):
        check(NOW, NOW + 2 * YEAR, None, YEAR)


def written(folder: Path, moment: float) -> None:
    """Make a store whose log and files are of a moment."""

    async def session() -> None:
        async with open(str(folder)) as store:
            await store.items.put("q", new_items("a"), moment)

    asyncio.run(session())
    for file in folder.iterdir():
        os.utime(file, (moment, moment))


@pytest.mark.parametrize(("years", "told"), [(-2, "730 days after"), (2, "730 days before")])
def test_a_server_does_not_start_with_such_a_clock(tmp_path: Path, years: int, told: str) -> None:
    written(tmp_path / "store", time.time() + years * YEAR)
    for _ in range(2):  # what is refused is refused again, if a supervisor starts it again
        said = refused("serve", "--store", tmp_path / "store", "--port", "0")
        assert f"{told} the log's last entry" in said
