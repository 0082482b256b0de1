"""The catalog: published datasets, what is in them, what to leave out, where to get them.

A `PublishedDataset` has a `FeatureSet`, which it may share with others. Counts are those of the
unchanged downloads.

>>> features = recognize(136)
>>> features.name, features.baseline_feature, features.behavior_features
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
    """A dataset is readable, but differs from the catalog."""


class DatasetNote(UserWarning):
    """Something was assumed about a dataset; the caller can change it."""


@dataclass(frozen=True, kw_only=True)
class FeatureSet:
    """Features that several datasets share, with their labels and production ranker.

    Attributes:
        name: what its publisher calls it.
        n_features: features in the files.
        max_label: the largest relevance label of the scale.
        baseline_feature: number of the feature with the BM25 score of the whole document.
        behavior_features: numbers of the features derived from clicks, which preparation removes.
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
class PublishedDataset:
    """One dataset of the catalog.

    Attributes:
        name: the publisher's name, which is also the name of its folder.
        aliases: other spellings people use.
        feature_set: its features.
        queries, rows: counts of one complete fold (every fold holds all queries).
        first_fold: sizes of the files of fold 1.
        paper_queries: queries the paper reports after filtering, or None if it does not use it.
        page: where its publisher offers it.
        terms: its publisher's terms of use.
    """

    name: str
    aliases: tuple[str, ...]
    feature_set: FeatureSet
    queries: int
    rows: int
    first_fold: Mapping[str, Size] = field(default_factory=dict)
    paper_queries: int | None
    page: str
    terms: str = (
        "Microsoft's own terms, for research; you accept them when you download it. "
        "ebrank neither ships nor fetches it."
    )


LETOR = FeatureSet(name="LETOR 4.0", n_features=46, max_label=2, baseline_feature=25)
MSLR = FeatureSet(
    name="MSLR-WEB",
    n_features=136,
    max_label=4,
    baseline_feature=110,
    behavior_features=(134, 135, 136),
)
FEATURE_SETS = (LETOR, MSLR)


def _first_fold(train: Size, vali: Size, test: Size) -> dict[str, Size]:
    return {"train": train, "vali": vali, "test": test}


PUBLISHED = (
    PublishedDataset(
        name="MQ2007",
        aliases=("mq-2007",),
        feature_set=LETOR,
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
    PublishedDataset(
        name="MQ2008",
        aliases=("mq-2008",),
        feature_set=LETOR,
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
    PublishedDataset(
        name="MSLR-WEB10K",
        aliases=("mslr-10k", "mslr10k", "web10k"),
        feature_set=MSLR,
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
    PublishedDataset(
        name="MSLR-WEB30K",
        aliases=("mslr-30k", "mslr30k", "web30k"),
        feature_set=MSLR,
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


def recognize(n_features: int) -> FeatureSet | None:
    """Return the feature set with this many features, or None."""
    return next((known for known in FEATURE_SETS if known.n_features == n_features), None)


def find(name: str) -> PublishedDataset | None:
    """Return the dataset with this name or alias, in any letter case, or None."""
    wanted = name.casefold()
    for published in PUBLISHED:
        if wanted in (published.name.casefold(), *published.aliases):
            return published
    return None


def named_by(path: Path) -> PublishedDataset | None:
    """Return the dataset named by a component of `path`, the innermost first, or None.

    >>> named_by(Path("/data/MQ2008/Fold1")).name
    'MQ2008'
    """
    return next((named for part in reversed(path.parts) if (named := find(part))), None)


def fold_of(path: Path) -> int | None:
    """Return the number of the fold that `path` names, or None.

    >>> fold_of(Path("/data/MQ2008/Fold1"))
    1
    """
    for part in reversed(path.parts):
        if named := re.fullmatch(r"fold(\d+)", part, re.IGNORECASE):
            return int(named[1])
    return None


def differences(published: PublishedDataset, sizes: Iterable[tuple[str, Size]]) -> list[str]:
    """Return one sentence for each `(what, size)` that differs from the catalog.

    `what` is "train", "vali" or "test" for a file of fold 1, or "all" for a whole fold.

    >>> differences(find("mq2008"), [("all", Size(queries=784, rows=15_000))])
    ['MQ2008 (all): 15,000 rows, expected 15,211']
    """
    whole = Size(queries=published.queries, rows=published.rows)
    expected = {**published.first_fold, "all": whole}
    return [
        f"{published.name} ({what}): {found:,} {unit}, expected {wanted:,}"
        for what, size in sizes
        if what in expected
        for unit, found, wanted in (
            ("queries", size.queries, expected[what].queries),
            ("rows", size.rows, expected[what].rows),
        )
        if found != wanted
    ]
