"""Figures as plain values: panels of lines, steps or bars, before drawing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["lines", "steps", "bars"]


@dataclass(frozen=True)
class Series:
    """One line, or one set of bars.

    Attributes:
        label: what readers see.
        style: its color and marker; a ranker looks the same in all figures.
        x: positions; for bars, their names.
        y: heights.
        error: half the height of the error bars or bands; () for none.
    """

    label: str
    style: str
    x: tuple[float | str, ...]
    y: tuple[float, ...]
    error: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raise if x, y and error do not fit together."""
        if len(self.y) != len(self.x):
            raise ValueError(f"y has {len(self.y)} values for {len(self.x)} of x")
        if len(self.error) not in (0, len(self.y)):
            raise ValueError(f"error has {len(self.error)} values for {len(self.y)} of y")


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        log_x: whether the x axis is logarithmic.
        zero: whether the y axis must begin at 0.
        down: whether the y axis grows downwards, as ranks do.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Kind = "lines"
    log_x: bool = False
    zero: bool = False
    down: bool = False


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with a name for their file, a title and a caption."""

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
