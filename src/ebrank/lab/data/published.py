"""The published datasets: what is in them, what to leave out, where to get them.

A `PublishedDataset` has a `FeatureSet`, which it may share with others. Counts are those of the
unchanged downloads.

>>> features = recognize(136)
>>> features.name, features.baseline_feature, features.drop_features
('MSLR-WEB', 110, (134, 135, 136))
>>> find("mslr-10k").size
Size(queries=10000, rows=1200192)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
        name: what its publisher calls it; None if it is not a known one.
        n_features: features in the files.
        max_label: the largest relevance label of the scale.
        baseline_feature: number of the feature with the BM25 score of the whole document.
        drop_features: numbers of the features derived from clicks, which preparation removes.
    """

    name: str | None = None
    n_features: int
    max_label: int
    baseline_feature: int | None = None
    drop_features: tuple[int, ...] = ()


class Size(NamedTuple):
    """Queries and rows of a file or of a whole fold."""

    queries: int
    rows: int

    @classmethod
    def total(cls, sizes: Iterable[Size]) -> Size:
        """Return the size of all of these together."""
        return cls(*map(sum, zip(*sizes, strict=True)))


@dataclass(frozen=True, kw_only=True)
class PublishedDataset:
    """One dataset of the catalog.

    Attributes:
        name: the publisher's name, which is also the name of its folder.
        aliases: other spellings people use.
        feature_set: its features.
        first_fold: sizes of the files of fold 1, by split; every fold holds all queries.
        page: where its publisher offers it.
    """

    name: str
    aliases: tuple[str, ...]
    feature_set: FeatureSet
    first_fold: Mapping[str, Size]
    page: str

    @property
    def size(self) -> Size:
        """Queries and rows of one complete fold."""
        return Size.total(self.first_fold.values())


LETOR = FeatureSet(name="LETOR 4.0", n_features=46, max_label=2, baseline_feature=25)
MSLR = FeatureSet(
    name="MSLR-WEB",
    n_features=136,
    max_label=4,
    baseline_feature=110,
    drop_features=(134, 135, 136),
)
FEATURE_SETS = (LETOR, MSLR)


def _published(
    name: str, aliases: tuple[str, ...], features: FeatureSet, *sizes: Size
) -> PublishedDataset:
    """Return a dataset with the sizes of train, vali and test of fold 1."""
    return PublishedDataset(
        name=name,
        aliases=aliases,
        feature_set=features,
        first_fold=dict(zip(("train", "vali", "test"), sizes, strict=True)),
        page=LETOR_PAGE if features is LETOR else MSLR_PAGE,
    )


MQ2007 = Size(1_017, 42_158), Size(339, 13_813), Size(336, 13_652)
MQ2008 = Size(471, 9_630), Size(157, 2_707), Size(156, 2_874)
WEB10K = Size(6_000, 723_412), Size(2_000, 235_259), Size(2_000, 241_521)
WEB30K = Size(18_919, 2_270_296), Size(6_306, 747_218), Size(6_306, 753_611)
PUBLISHED = (
    _published("MQ2007", ("mq-2007",), LETOR, *MQ2007),
    _published("MQ2008", ("mq-2008",), LETOR, *MQ2008),
    _published("MSLR-WEB10K", ("mslr-10k", "mslr10k", "web10k"), MSLR, *WEB10K),
    _published("MSLR-WEB30K", ("mslr-30k", "mslr30k", "web30k"), MSLR, *WEB30K),
)


def recognize(n_features: int) -> FeatureSet | None:
    """Return the feature set with this many features, or None."""
    return next((features for features in FEATURE_SETS if features.n_features == n_features), None)


def find(name: str) -> PublishedDataset | None:
    """Return the dataset with this name or alias, in any letter case, or None."""
    wanted = name.casefold()
    return next((p for p in PUBLISHED if wanted in (p.name.casefold(), *p.aliases)), None)


def named_by(path: Path) -> PublishedDataset | None:
    """Return the dataset named by a component of `path`, the innermost first, or None.

    >>> named_by(Path("/MQ2007/mq-2008/Fold1")).name, named_by(Path("/MQ2008-sample"))
    ('MQ2008', None)
    """
    return next((named for part in reversed(path.parts) if (named := find(part))), None)


def fold_number(name: str) -> int | None:
    """Return the number in a folder's name such as `Fold3`, or None.

    >>> fold_number("Fold3"), fold_number("folder")
    (3, None)
    """
    match = re.fullmatch(r"fold(\d+)", name, re.IGNORECASE)
    return None if match is None else int(match[1])


def fold_of(path: Path) -> int | None:
    """Return the number of the fold that `path` names, or None.

    >>> fold_of(Path("/data/MQ2008/fold5")), fold_of(Path("/data/MQ2008"))
    (5, None)
    """
    numbers = map(fold_number, reversed(path.parts))
    return next((number for number in numbers if number is not None), None)


def differences(published: PublishedDataset, sizes: Mapping[str, Size]) -> list[str]:
    """Return one sentence for each size that differs from the catalog.

    A size is that of a file of fold 1 ("train", "vali", "test") or of any whole fold ("all").

    >>> differences(find("mq2008"), {"all": Size(queries=784, rows=15_000)})
    ['MQ2008 (all): 15,000 rows, expected 15,211']
    """
    expected = {**published.first_fold, "all": published.size}
    return [
        f"{published.name} ({what}): {count:,} {unit}, expected {wanted:,}"
        for what, size in sizes.items()
        if what in expected
        for unit, count, wanted in zip(Size._fields, size, expected[what], strict=True)
        if count != wanted
    ]
