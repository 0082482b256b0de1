"""How wide a text is in the font that matplotlib ships, so that it is the same everywhere."""

from __future__ import annotations

from functools import cache

FAMILY = "DejaVu Sans"
SIZE = 9.0
"""The font size of figures, in points."""


@cache
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line of text in points.

    >>> text_width("mm", 8.0) == 2 * text_width("m", 8.0) > text_width("ii", 8.0)
    True
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FAMILY, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)
