"""Whether the machine's clock can be right: compared with the store before it dates anything.

Times in the log never go back. One start with a clock years ahead would date the log in the future:
it would stand still for years, and nothing would be rolled up meanwhile. So a server does not start
if its clock is far behind the log, or so far ahead of the log and of the store's files that the
store must have been idle for longer than `store.max_idle_seconds`.

>>> check(now=1_800_000_000.0, last=1_700_000_000.0, touched=None, most_idle=0.0)
>>> check(now=1_800_000_000.0, last=1_700_000_000.0, touched=None, most_idle=86400.0)
Traceback (most recent call last):
ebrank.service.ops.clock.ClockError: the machine's clock says 2027-01-15, 1,157 days after ...
"""

from __future__ import annotations

from datetime import UTC, datetime

from ebrank.errors import EBRankError

DAY = 86400.0
MOST_BEHIND_SECONDS = DAY
"""A clock less far behind the log is fine: times stand still until it catches up."""


class ClockError(EBRankError):
    """The machine's clock and the store contradict each other: says what to do."""


def check(now: float, last: float, touched: float | None, most_idle: float) -> None:
    """Raise if the clock cannot be right.

    Args:
        now: what the clock says.
        last: the time of the latest write of the log, 0 if there is none.
        touched: when the store's files were last changed, by the clock of their disk.
        most_idle: how many seconds a store may have been idle; 0 is any time.
    """
    if last - now > MOST_BEHIND_SECONDS:
        raise ClockError(
            f"the machine's clock says {day(now)}, {_days(last - now)} before the log's last "
            f"entry, of {day(last)}. If the clock is wrong, set it. If it is right, an earlier "
            "one was not: stop the server, and run `ebrank repair STORE`, or restore a backup of "
            "the database"
        )
    latest = max(last, touched or 0.0)
    if last and most_idle and now - latest > most_idle:
        raise ClockError(
            f"the machine's clock says {day(now)}, {_days(now - latest)} after the log's last "
            f"entry and the last change of the store's files, of {day(latest)}. If the clock is "
            "wrong, set it. If it is right, and the store was idle for so long, start once with "
            "EBRANK_SERVE_STORE_MAX_IDLE_SECONDS=0"
        )


def day(time: float) -> str:
    """Return the date of a time in seconds since 1970.

    >>> day(0.0), day(1e18)
    ('1970-01-01', 'a day that no calendar has')
    """
    try:
        return datetime.fromtimestamp(time, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return "a day that no calendar has"


def _days(seconds: float) -> str:
    return f"{seconds / DAY:,.0f} days"
