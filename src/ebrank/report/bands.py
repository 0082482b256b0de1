"""Whose spread is drawn: where lines are many, bands upon bands would hide them all but one."""

from __future__ import annotations

from ebrank.experiments.outcome import Figure, Panel, Series
from ebrank.report.palette import looks

MANY = 5
"""So many lines have no bands, but for the one that the figure is about."""
SOME = "Of so many lines, only EBRank's band is drawn."
NONE = "Of so many lines, no band is drawn."


def banded(panel: Panel, one: Series) -> bool:
    """Return whether a series is drawn with its errors."""
    if not one.error:
        return False
    few = panel.kind not in ("lines", "steps") or len(panel.series) < MANY
    return few or looks([one.style])[0].emphasized


def caption(figure: Figure) -> str:
    """Return a figure's caption, and whose bands were left out."""
    drawn = [banded(panel, one) for panel in figure.panels for one in panel.series if one.error]
    if all(drawn):
        return figure.caption
    return f"{figure.caption} {SOME if any(drawn) else NONE}".strip()
