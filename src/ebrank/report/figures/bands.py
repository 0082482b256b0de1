"""Which error bands are drawn: with many lines, their bands would hide each other."""

from __future__ import annotations

from ebrank.experiments.framework.outcome import Figure, Panel, Series
from ebrank.report.figures.palette import looks

MANY = 5
"""From this many lines on, only the one that the figure is about has a band."""
SOME = "Of so many lines, only EBRank's band is drawn."
NONE = "Of so many lines, no band is drawn."


def banded(panel: Panel, series: Series) -> bool:
    """Return whether a series is drawn with its errors."""
    if not series.error:
        return False
    few = panel.kind not in ("lines", "steps") or len(panel.series) < MANY
    return few or looks([series.style])[0].emphasized


def caption(figure: Figure) -> str:
    """Return a figure's caption, with a note on bands that were left out."""
    drawn = [
        banded(panel, series) for panel in figure.panels for series in panel.series if series.error
    ]
    if all(drawn):
        return figure.caption
    return f"{figure.caption} {SOME if any(drawn) else NONE}".strip()
