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
