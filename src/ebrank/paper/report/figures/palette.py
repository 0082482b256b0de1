"""How each ranker looks in every figure: its own color, marker and dash.

Any of the three tells lines apart, so figures work in gray print and for color-blind readers. On
dark pages each color has a lighter version (`LOOKS[...].dark`).

>>> LOOKS["auto"].weight > LOOKS["ebrank"].weight > LOOKS["bm25"].weight
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

Dash: TypeAlias = tuple[float, ...]


@dataclass(frozen=True)
class Look:
    """How a series is drawn.

    Attributes:
        light: its color on white.
        dark: its color on a dark page.
        marker: as matplotlib names them.
        dash: lengths of strokes and gaps in points; () is a solid line.
        weight: of its line, in points.
    """

    light: str
    dark: str
    marker: str
    dash: Dash = ()
    weight: float = 1.2

    @property
    def emphasized(self) -> bool:
        """Whether it is emphasized."""
        return self.weight > 2


INK = "#1b1e23"
"""The color of texts and axes; pages replace it with their own."""

SOLID: Dash = ()
"""For `auto` alone."""
DASHED: Dash = (4, 1.4)
LONG: Dash = (7, 2)
SHORT: Dash = (3, 1.5)
DOTS: Dash = (1, 1.3)
DASH_DOT: Dash = (6, 1.5, 1, 1.5)
DASH_DOT_DOT: Dash = (6, 1.5, 1, 1.5, 1, 1.5)

LOOKS = {
    "ebrank": Look("#c4161c", "#ff6b66", "o", DASHED, 2.2),
    "auto": Look("#0b7a4b", "#3ddc97", "*", SOLID, 2.8),
    "ebrank-exposure": Look("#d97000", "#ffb04d", "D", SHORT, 1.8),
    "ucbrank": Look("#0067b1", "#5eb4f5", "s", LONG, 1.5),
    "prior": Look("#00876c", "#3fcfa8", "^", LONG, 1.3),
    "cftopk": Look("#6a3d9a", "#b795e6", "v", SHORT),
    "cfrandomk": Look("#8c510a", "#d3a06a", "<", SHORT),
    "cfepsilon": Look("#c2388f", "#f58fd0", ">", SHORT),
    "dbgd": Look("#3f6f8f", "#8fb8d4", "P", DASH_DOT),
    "mgd": Look("#1492b5", "#58cdea", "X", DASH_DOT),
    "pdgd": Look("#1f3b8f", "#8ea6ff", "p", DASH_DOT),
    "bm25": Look("#6e6e6e", "#a9a9a9", "h", DOTS),
    "thompson": Look("#5b7a00", "#b2d14a", "8", DASH_DOT_DOT),
    "random": Look("#8a7f5c", "#c9bd94", "d", DOTS),
    "oracle": Look("#3a3a3a", "#dcdcdc", "H", DOTS),
    "ebrank-untuned": Look("#d4666a", "#d98b8c", "H", SHORT, 1.4),
    "exposure-untuned": Look("#b5852f", "#cda56a", "d", SHORT, 1.4),
    "pbmucb": Look("#7049b3", "#ac8df0", "X", DASH_DOT),
    "smoothedctr": Look("#5d5d66", "#b3b3bd", "P", DOTS),
    "hybridlinucb": Look("#00839b", "#3cc4dd", "p", LONG),
    "posterior-ucb": Look("#9b4f96", "#d59ad0", "h", LONG),
    "toprank": Look("#4f5d2f", "#aebb86", "v", DASH_DOT_DOT),
}

OTHERS = (
    Look("#0068b3", "#5fb5f6", "s", LONG, 1.5),
    Look("#00886d", "#40d0a9", "^", SHORT, 1.5),
    Look("#6b3e9b", "#b896e7", "v", DASH_DOT, 1.5),
    Look("#8d520b", "#d4a16b", "P", DOTS, 1.5),
    Look("#c33990", "#f690d1", "X", DASH_DOT_DOT, 1.5),
    Look("#6f6f6f", "#aaaaaa", "d", LONG, 1.5),
)
"""For series other than the paper's rankers, in the order they appear."""


FAR = 70.0
"""At this distance or more, readers tell two colors apart at a glance."""


def looks(styles: Sequence[str]) -> list[Look]:
    """Return the looks of a panel's series.

    A repeated style keeps its color and gets another marker and dash.

    >>> first, second = looks(["ebrank", "ebrank"])
    >>> first.light == second.light, first.marker == second.marker
    (True, False)
    """
    chosen = {style: LOOKS[style] for style in styles if style in LOOKS}
    drawn: list[Look] = []
    for style in styles:
        if style not in chosen:
            chosen[style] = _stranger(chosen.values())
        look = chosen[style]
        taken = {other.marker for other in drawn}
        if look.marker in taken:
            look = _another(look, taken)
        drawn.append(look)
    return drawn


def _stranger(present: Iterable[Look]) -> Look:
    """Return the first look that is not close to any present, or the one furthest from all."""
    present = list(present)
    spare = (*OTHERS, *(replace(look, weight=1.5) for look in LOOKS.values()))
    apart = [min((_distance(look, other) for other in present), default=FAR) for look in spare]
    first = next((place for place, distance in enumerate(apart) if distance >= FAR), None)
    return spare[apart.index(max(apart)) if first is None else first]


def _distance(look: Look, other: Look) -> float:
    """Return how far apart two colors are, from 0 to 442.

    >>> _distance(LOOKS["ebrank"], LOOKS["ebrank"]), _distance(LOOKS["ucbrank"], OTHERS[0]) < 5
    (0.0, True)
    """
    pairs = zip(bytes.fromhex(look.light[1:]), bytes.fromhex(other.light[1:]), strict=True)
    return math.sqrt(sum((a - b) ** 2 for a, b in pairs))


def _another(look: Look, taken: Iterable[str]) -> Look:
    """Return the same color with a marker that is not taken, if there is one."""
    spare = next((other for other in OTHERS if other.marker not in taken), OTHERS[-1])
    return replace(look, marker=spare.marker, dash=spare.dash)


def every_look() -> list[Look]:
    """Return all looks, whose colors a page must know."""
    return [*LOOKS.values(), *OTHERS]
