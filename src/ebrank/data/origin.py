"""Where a dataset came from, as its loader saw it.

A name proves nothing: any folder may be called MQ2007. Whoever holds results against published ones
asks the origin, which remembers the fold, and in what the files differ from the published ones.

>>> Origin("MQ2007", fold=1).published, Origin("mq2007-like", preset=True, scale=0.1).published
(True, False)
>>> Origin("MQ2007", fold=1, differences=("MQ2007 (train): 3 queries, expected 1,017",)).published
False
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """A preset, or files that lie where a dataset of the catalogue would.

    Attributes:
        name: the preset's, or the catalogue's.
        preset: whether it is synthetic.
        scale: share of the preset's queries.
        fold: which fold of a published dataset; None where that is unknown.
        differences: in what the files are not those of the catalogue, a sentence each.
        options: what the loader was told to do otherwise, as (parameter, value).
    """

    name: str
    preset: bool = False
    scale: float = 1.0
    fold: int | None = None
    differences: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @property
    def published(self) -> bool:
        """Whether the content is that of the published dataset."""
        return not self.preset and not self.differences


def told(**options: object) -> tuple[tuple[str, str], ...]:
    """Return the options that were given, as text.

    >>> told(max_label=3, baseline_feature=None, drop_features=(1, 2))
    (('max_label', '3'), ('drop_features', '1,2'))
    """
    return tuple(
        (name, ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value))
        for name, value in options.items()
        if value is not None
    )
