"""Whose spread is drawn: where lines are many, bands upon bands would hide them all but one."""

from __future__ import annotations

from ebrank.experiments.outcome import Figure, Panel, Series
from ebrank.report.palette import looks

MANY = 5
"""So many lines have no bands, but for the one that the figure is about."""
NOTE = "Of so many lines, only EBRank's band is drawn."


def banded(panel: Panel, one: Series) -> bool:
    """Return whether a series is drawn with its errors."""
    if not one.error:
        return False
    few = panel.kind not in ("lines", "steps") or len(panel.series) < MANY
    return few or looks([one.style])[0].emphasized


def caption(figure: Figure) -> str:
    """Return a figure's caption, and whose bands were left out."""
    left_out = any(
        one.error and not banded(panel, one) for panel in figure.panels for one in panel.series
    )
    return f"{figure.caption} {NOTE}".strip() if left_out else figure.caption
