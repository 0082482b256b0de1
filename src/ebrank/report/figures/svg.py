"""Adapts matplotlib's SVG to pages: to screen readers, dark pages, and many figures on one page.

Texts stay texts, so a page can be searched and uses the reader's own fonts.
"""

from __future__ import annotations

import re
from html import escape

from ebrank.report.figures.palette import INK, every_look

FAMILY = "DejaVu Sans"
"""The font that matplotlib ships, so that texts are measured the same everywhere."""
_FONTS = "'DejaVu Sans', Verdana, Geneva, sans-serif"
"""Families about as wide as the font that the layout was measured with."""


LARGEST = 1.45
"""How much a wide page enlarges a picture."""


def described(svg: str, title: str, description: str) -> str:
    """Return a picture with a title and description, without matplotlib's metadata."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace(f"'{FAMILY}'", _FONTS)
    words = f"<title>{escape(title)}</title>\n <desc>{escape(description)}</desc>"
    return re.sub(r"<svg [^>]*>", lambda tag: f"{_as_image(tag[0])}\n {words}", svg, count=1)


def without_part_ids(svg: str) -> str:
    """Return a picture without the ids of its series' parts, which several panels would share."""
    return re.sub(r' id="series-\d+-[^"]*"', "", svg)


def inline(svg: str, prefix: str, series: str) -> str:
    """Return a described picture to put into a page: somewhat larger, in the page's colors.

    Ink becomes the color of the surrounding text, each series' color a variable of `variables`. Ids
    get a prefix, since they must be unique on a page. The page's script reads `series`.
    """

    def sized(match: re.Match[str]) -> str:
        widest = f"{LARGEST * float(match[1]):g}"
        return f' data-series="{escape(series)}" style="max-width: {widest}pt"'

    svg = re.sub(r' width="([0-9.]+)pt" height="[^"]*"', sized, svg, count=1)
    svg = svg.replace(INK, "currentColor")
    for number, look in enumerate(every_look()):
        svg = svg.replace(look.light, f"var(--series-{number})")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    return re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", svg)


def variables(*, dark: bool) -> str:
    """Return the series' colors as CSS, for a light or a dark page.

    >>> variables(dark=False).split("; ")[0]
    '--series-0: #c4161c'
    """
    colors = [look.dark if dark else look.light for look in every_look()]
    return "; ".join(f"--series-{number}: {color}" for number, color in enumerate(colors))


def _as_image(tag: str) -> str:
    return tag.replace("<svg ", '<svg role="img" ', 1)
