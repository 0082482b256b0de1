"""Which error bands are drawn: with many lines, their bands would hide each other."""

from __future__ import annotations

from collections.abc import Sequence

from ebrank.experiments.framework.outcome import Figure, Panel, Series
from ebrank.report.figures.palette import looks

MANY = 5
"""From this many lines on, only the emphasized ones have bands."""
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
        (series.label, banded(panel, series))
        for panel in figure.panels
        for series in panel.series
        if series.error
    ]
    if all(with_band for _, with_band in drawn):
        return figure.caption
    names = list(dict.fromkeys(label for label, with_band in drawn if with_band))
    return f"{figure.caption} {_some(names) if names else NONE}".strip()


def _some(names: Sequence[str]) -> str:
    """Return whose bands are drawn.

    >>> _some(["EBRank"]), _some(["auto", "EBRank"])[-36:]
    ('Of so many lines, only the band of EBRank is drawn.', 'the bands of auto, EBRank are drawn.')
    """
    band, is_drawn = ("band", "is drawn") if len(names) == 1 else ("bands", "are drawn")
    return f"Of so many lines, only the {band} of {', '.join(names)} {is_drawn}."
