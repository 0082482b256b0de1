"""Numbers as text, as papers print them and as people say them.

>>> number(0.8591, 3), number(-0.012, 2), number(1643, 0), number(171.26, 1), number(None, 3)
('.859', '−.01', '1,643', '171.3', '–')
"""

from __future__ import annotations

import math

NOTHING = "–"
MINUS = "−"


def number(value: float | None, digits: int, *, signed: bool = False) -> str:
    """Return a number with `digits` after the point, no zero before it, and a real minus sign.

    A difference is `signed`: it also shows a plus. A number that rounds to zero has no sign:

    >>> number(0.029, 3, signed=True), number(-0.0001, 3), number(0, 0), number(float("inf"), 1)
    ('+.029', '.000', '0', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    sign = MINUS if value < 0 else "+" if signed else ""
    text = f"{abs(value):,.{digits}f}"
    if not text.strip("0.,"):
        sign = ""
    return sign + (text.removeprefix("0") if digits else text)


def p_text(value: float) -> str:
    """Return a p-value.

    >>> p_text(0.00001), p_text(0.0312), p_text(1.0)
    ('p < .0001', 'p = .0312', 'p = 1.0000')
    """
    return "p < .0001" if value < 0.0001 else "p = " + f"{value:.4f}".removeprefix("0")


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a count with its noun.

    >>> counted(1, "trial"), counted(1200, "trial"), counted(2, "query", "queries")
    ('1 trial', '1,200 trials', '2 queries')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def duration(seconds: float) -> str:
    """Return a time span.

    >>> duration(0.42), duration(8.25), duration(75), duration(3720)
    ('0.4 s', '8.2 s', '1 min 15 s', '1 h 2 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 59.95 else "1 min 0 s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
