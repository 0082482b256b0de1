"""The synthetic shop: its formula, found again in its data, and what preparation makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import ebrank
from ebrank.errors import ParameterError
from ebrank.lab.data import from_arrays, generate, prepare
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.shop import CANDIDATES, ITEM_FEATURES, ITEMS
from ebrank.lab.simulation.stamps import fingerprint
from ebrank.typing import Floats, Ints


def items_of(dataset: Dataset) -> Ints:
    assert dataset.items is not None
    return dataset.items


def logits(dataset: Dataset) -> Floats:
    assert dataset.relevance is not None
    relevance = dataset.relevance[dataset.labels]
    return np.asarray(np.log(relevance / (1 - relevance)))


@pytest.mark.parametrize(("tau", "level"), [(0.8, -1.6), (1.2, -3.9)])
def test_least_squares_finds_the_formula(tau: float, level: float) -> None:
    """With u as a feature, all that is left is e: its spread, and the weights, are as declared."""
    raw = generate(f"shop-like:tau={tau},level={level},known=true", seed=3)
    columns = np.column_stack([np.ones(raw.n_rows), raw.features.astype(np.float64)])
    weights, *_ = np.linalg.lstsq(columns, logits(raw), rcond=None)
    assert weights[0] == pytest.approx(level, abs=0.03)
    assert weights[-3:] == pytest.approx([0.6, 0.4, 1.0], abs=0.03)
    assert (logits(raw) - columns @ weights).std() == pytest.approx(0.5, abs=0.02)
    _, first = np.unique(items_of(raw), return_index=True)
    effects = raw.features[first, -1]
    assert len(effects) == pytest.approx(1500, abs=5)
    assert effects.std() == pytest.approx(tau, rel=0.05)


def test_a_query_has_items_of_one_category_each_once() -> None:
    items = items_of(generate("shop-like")).reshape(-1, CANDIDATES)
    assert items.shape == (400, CANDIDATES)
    categories = items // ITEMS
    assert np.all(categories == categories[:, :1])
    assert np.bincount(categories[:, 0]).tolist() == [20] * 20


def test_conditions_change_nothing_but_what_they_say() -> None:
    """The same catalog, queries, features and effects, whatever τ and the level are."""
    plain = generate("shop-like:tau=0,level=-1.6", seed=5)
    other = generate("shop-like:tau=1.2,level=-3.9,known=true", seed=5)
    assert np.array_equal(plain.items, other.items)  # type: ignore[arg-type]
    assert np.array_equal(plain.features, other.features[:, :-1])
    effects = generate("shop-like:tau=0.6,known=true", seed=5).features[:, -1]
    assert other.features[:, -1] == pytest.approx(2 * effects, rel=1e-5)
    shift = logits(other) - logits(plain) - other.features[:, -1]
    assert shift == pytest.approx(-2.3, abs=0.15)
    assert fingerprint(plain) != fingerprint(generate("shop-like:tau=0", seed=6))


def test_an_item_keeps_its_features_in_all_its_queries() -> None:
    dataset = ebrank.load("shop-like", scale=0.1)
    items = items_of(dataset)
    assert dataset.features.min(axis=0).tolist() == [0.0] * 8
    assert dataset.features.max(axis=0).tolist() == [1.0] * 8
    own = dataset.features[:, :ITEM_FEATURES]
    _, first, which = np.unique(items, return_index=True, return_inverse=True)
    assert np.array_equal(own, own[first][which.reshape(-1)])


def test_a_known_effect_of_zero_is_no_feature() -> None:
    plain = ebrank.load("shop-like:tau=0", scale=0.1)
    known = ebrank.load("shop-like:tau=0,known=true", scale=0.1)
    assert fingerprint(plain) == fingerprint(known)


def test_parts_of_a_dataset_keep_their_items() -> None:
    raw = generate("shop-like", scale=0.1)
    some = raw.only(np.array([raw.queries_in(split)[0] for split in SPLITS]))
    first = [int(raw.queries_in(split)[0]) for split in ("train", "vali", "test")]
    kept = np.concatenate([items_of(raw)[raw.rows_of(query)] for query in first])
    assert np.array_equal(items_of(some), kept)
    dataset = from_arrays(
        np.arange(10.0)[:, None],
        [0, 1, 2, 0, 1, 2, 0, 1, 2, 0],
        np.repeat(["a", "b"], [7, 3]),
        items=["kettle", "mug", "pot", "tray", "cup", "jar", "can", "mug", "pot", "jar"],
        splits=["train"] * 7 + ["test"] * 3,
    )
    assert dataset.n_features == 1
    assert items_of(dataset).tolist() == [3, 4, 5, 6, 1, 2, 0, 4, 5, 2]
    assert items_of(prepare(dataset)).tolist() == [3, 4, 5, 6, 1, 2, 0], "b is too small"


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("shop-like:tau=-1", {}, "tau takes a number of 0 or more"),
        ("shop-like:size=3", {}, "shop-like has no parameter 'size'"),
        ("shop-like", {"interactions": 0.5}, "shop-like has no interactions"),
    ],
)
def test_what_it_cannot_do_is_refused(name: str, options: dict[str, float], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        ebrank.load(name, **options)  # type: ignore[arg-type]
