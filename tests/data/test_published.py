"""The catalog: recognition, names, and counts that are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.data.published import (
    FEATURE_SETS,
    PUBLISHED,
    PublishedDataset,
    Size,
    differences,
    find,
    fold_of,
    named_by,
    recognize,
)


@pytest.mark.parametrize(
    ("features", "name", "baseline", "behavior", "max_label"),
    [(46, "LETOR 4.0", 25, (), 2), (136, "MSLR-WEB", 110, (134, 135, 136), 4)],
)
def test_a_feature_set_is_recognized_by_its_features(
    features: int, name: str, baseline: int, behavior: tuple[int, ...], max_label: int
) -> None:
    known = recognize(features)
    assert known is not None
    assert (known.name, known.baseline_feature) == (name, baseline)
    assert (known.behavior_features, known.max_label) == (behavior, max_label)


@pytest.mark.parametrize("features", [0, 45, 47, 133, 137])
def test_other_numbers_of_features_are_not_recognized(features: int) -> None:
    assert recognize(features) is None


@pytest.mark.parametrize(
    ("name", "queries", "rows"),
    [
        ("MQ2007", 1_692, 69_623),
        ("MQ2008", 784, 15_211),
        ("MSLR-WEB10K", 10_000, 1_200_192),
        ("MSLR-WEB30K", 31_531, 3_771_125),
    ],
)
def test_published_counts(name: str, queries: int, rows: int) -> None:
    published = find(name)
    assert published is not None
    assert published.size == Size(queries, rows)


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
def test_a_published_dataset_is_consistent(published: PublishedDataset) -> None:
    assert published.feature_set in FEATURE_SETS
    assert list(published.first_fold) == ["train", "vali", "test"]
    assert published.paper_queries is None or published.paper_queries < published.size.queries


def test_names_and_aliases_are_found_in_any_case_and_are_unambiguous() -> None:
    names = [
        name.casefold() for published in PUBLISHED for name in (published.name, *published.aliases)
    ]
    assert len(names) == len(set(names))
    for published in PUBLISHED:
        for name in (published.name, *published.aliases):
            assert find(name.upper()) is find(name.lower()) is published
    assert find("MSLR-WEB30K-sample") is None


@pytest.mark.parametrize(
    ("path", "name", "fold"),
    [
        ("/data/MQ2008/Fold1", "MQ2008", 1),
        ("/data/mslr-web10k/fold5", "MSLR-WEB10K", 5),
        ("/MQ2007/MQ2008", "MQ2008", None),
        ("/data/MSLR-WEB30K-sample", None, None),
    ],
)
def test_a_path_tells_dataset_and_fold(path: str, name: str | None, fold: int | None) -> None:
    published = named_by(Path(path))
    assert (published.name if published else None) == name
    assert fold_of(Path(path)) == fold


def test_differences_say_what_differs() -> None:
    published = find("MQ2008")
    assert published is not None
    sizes = {"train": Size(470, 9_630), "vali": Size(157, 2_707), "all": Size(785, 15_210)}
    assert differences(published, sizes) == [
        "MQ2008 (train): 470 queries, expected 471",
        "MQ2008 (all): 785 queries, expected 784",
        "MQ2008 (all): 15,210 rows, expected 15,211",
    ]
