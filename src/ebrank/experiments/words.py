"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number of things.

    >>> counted(1, "trial"), counted(1200, "trial"), counted(2, "query", "queries")
    ('1 trial', '1,200 trials', '2 queries')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"
