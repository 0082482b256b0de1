"""The datasets ebrank knows: what is in them, what to leave out, where to get them.

A `Family` is a feature set shared by several datasets, told by the number of features alone; an
`Entry` is one dataset of a family. Counts are those of the unchanged downloads.

>>> family = recognize(136)
>>> family.name, family.baseline_feature, family.behavior_features
('MSLR-WEB', 110, (134, 135, 136))
>>> find("mslr-10k").rows
1200192
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LETOR_PAGE = (
    "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
)
MSLR_PAGE = "https://www.microsoft.com/en-us/research/project/mslr/"


class DatasetWarning(UserWarning):
    """A dataset that is readable but not what the catalogue says it should be."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """A feature set: datasets with the same features, labels and production ranker.

    Attributes:
        name: what its publisher calls it.
        n_features: features in the files; the family is recognized by it.
        max_label: the largest relevance label of the scale.
        baseline_feature: number of the feature that is the BM25 score of the whole document.
        behavior_features: numbers of the features made from clicks, which preparation removes.
    """

    name: str
    n_features: int
    max_label: int
    baseline_feature: int
    behavior_features: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Size:
    """Queries and rows of a file or of a whole fold."""

    queries: int
    rows: int

    def __str__(self) -> str:
        return f"{self.queries:,} queries, {self.rows:,} rows"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One published dataset.

    Attributes:
        name: the publisher's name, which is also the name of its folder.
        aliases: other spellings people use.
        family: its feature set.
        queries, rows: counts of one complete fold (every fold holds all queries).
        first_fold: sizes of the files of fold 1.
        paper_queries: queries the paper reports after filtering, or None if it does not use it.
        page: where its publisher offers it.
        terms: what its publisher asks of those who use it.
    """

    name: str
    aliases: tuple[str, ...]
    family: Family
    queries: int
    rows: int
    first_fold: Mapping[str, Size] = field(default_factory=dict)
    paper_queries: int | None
    page: str
    terms: str = (
        "Microsoft's own terms, for research; you accept them when you download it. "
        "ebrank neither ships nor fetches it."
    )


LETOR = Family(name="LETOR 4.0", n_features=46, max_label=2, baseline_feature=25)
MSLR = Family(
    name="MSLR-WEB",
    n_features=136,
    max_label=4,
    baseline_feature=110,
    behavior_features=(134, 135, 136),
)
FAMILIES = (LETOR, MSLR)


def _first_fold(train: Size, vali: Size, test: Size) -> dict[str, Size]:
    return {"train": train, "vali": vali, "test": test}


ENTRIES = (
    Entry(
        name="MQ2007",
        aliases=("mq-2007",),
        family=LETOR,
        queries=1_692,
        rows=69_623,
        first_fold=_first_fold(
            Size(queries=1_017, rows=42_158),
            Size(queries=339, rows=13_813),
            Size(queries=336, rows=13_652),
        ),
        paper_queries=1_643,
        page=LETOR_PAGE,
    ),
    Entry(
        name="MQ2008",
        aliases=("mq-2008",),
        family=LETOR,
        queries=784,
        rows=15_211,
        first_fold=_first_fold(
            Size(queries=471, rows=9_630),
            Size(queries=157, rows=2_707),
            Size(queries=156, rows=2_874),
        ),
        paper_queries=None,
        page=LETOR_PAGE,
    ),
    Entry(
        name="MSLR-WEB10K",
        aliases=("mslr-10k", "mslr10k", "web10k"),
        family=MSLR,
        queries=10_000,
        rows=1_200_192,
        first_fold=_first_fold(
            Size(queries=6_000, rows=723_412),
            Size(queries=2_000, rows=235_259),
            Size(queries=2_000, rows=241_521),
        ),
        paper_queries=9_835,
        page=MSLR_PAGE,
    ),
    Entry(
        name="MSLR-WEB30K",
        aliases=("mslr-30k", "mslr30k", "web30k"),
        family=MSLR,
        queries=31_531,
        rows=3_771_125,
        first_fold=_first_fold(
            Size(queries=18_919, rows=2_270_296),
            Size(queries=6_306, rows=747_218),
            Size(queries=6_306, rows=753_611),
        ),
        paper_queries=30_995,
        page=MSLR_PAGE,
    ),
)


def recognize(n_features: int) -> Family | None:
    """Return the family whose files have this many features, or None."""
    return next((family for family in FAMILIES if family.n_features == n_features), None)


def find(name: str) -> Entry | None:
    """Return the entry with this name or alias, whatever the letter case, or None."""
    wanted = name.casefold()
    for entry in ENTRIES:
        if wanted in (entry.name.casefold(), *entry.aliases):
            return entry
    return None


def entry_of(path: Path) -> Entry | None:
    """Return the entry named by a component of `path`, the innermost first, or None.

    >>> entry_of(Path("/data/MQ2008/Fold1")).name
    'MQ2008'
    """
    return next((entry for part in reversed(path.parts) if (entry := find(part))), None)


def fold_of(path: Path) -> int | None:
    """Return the number of the fold that `path` names, or None.

    >>> fold_of(Path("/data/MQ2008/Fold1"))
    1
    """
    for part in reversed(path.parts):
        if named := re.fullmatch(r"fold(\d+)", part, re.IGNORECASE):
            return int(named[1])
    return None


def differences(entry: Entry, sizes: Iterable[tuple[str, Size]]) -> list[str]:
    """Return one sentence for each `(what, size)` that is not what the catalogue expects.

    `what` is "train", "vali" or "test" for a file of fold 1, or "all" for a whole fold.

    >>> differences(find("mq2008"), [("all", Size(queries=784, rows=15_000))])
    ['MQ2008 (all): 15,000 rows, expected 15,211']
    """
    expected = {**entry.first_fold, "all": Size(queries=entry.queries, rows=entry.rows)}
    return [
        f"{entry.name} ({what}): {found:,} {unit}, expected {wanted:,}"
        for what, size in sizes
        if what in expected
        for unit, found, wanted in (
            ("queries", size.queries, expected[what].queries),
            ("rows", size.rows, expected[what].rows),
        )
        if found != wanted
    ]
