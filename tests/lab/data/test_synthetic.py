from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.preparation import prepare
from ebrank.lab.data.synthetic import PRESETS, generate
from tests.lab.data.ranking_quality import TARGETS, least_squares_scores, mean_ndcg

QUICK = {"mq2007-like": 1.0, "mslr10k-like": 0.06, "mslr30k-like": 0.02}
"""A scale for each preset at which a dataset takes a fraction of a second."""

SLOW = {"mslr30k-like": [pytest.mark.slow]}
presets = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW.get(name, [])) for name in TARGETS]
)


@cache
def raw(name: str, seed: int = 0) -> Dataset:
    return generate(name, scale=QUICK[name], seed=seed)


@cache
def prepared(name: str, seed: int = 0) -> Dataset:
    return prepare(raw(name, seed))


def same_bits(a: Dataset, b: Dataset) -> bool:
    return all(
        np.array_equal(getattr(a, field), getattr(b, field))
        for field in ("features", "labels", "query_pointers", "query_splits", "baseline")
    )


# --- sizes and guarantees --------------------------------------------------------------------


@presets
def test_has_the_real_numbers_of_queries_candidates_and_features(name: str) -> None:
    preset, dataset = PRESETS[name], raw(name)
    assert dataset.n_queries == round(preset.queries * QUICK[name])
    assert dataset.candidates.mean() == pytest.approx(preset.mean_candidates, abs=0.6)
    assert dataset.candidates.min() in range(6, 12)
    assert dataset.candidates.max() > 3 * preset.mean_candidates
    small = name == "mq2007-like"
    assert (dataset.n_features, dataset.max_label) == ((46, 2) if small else (133, 4))
    assert dataset.feature_ids.tolist() == list(range(1, dataset.n_features + 1))
    assert dataset.query_ids.tolist() == [str(q + 1) for q in range(dataset.n_queries)]
    column = (25 if small else 110) - 1
    assert preset.features[column].name == "BM25, whole document"
    np.testing.assert_array_equal(dataset.baseline, dataset.features[:, column])
    splits = dataset.query_splits
    assert (np.diff(splits) >= 0).all()
    np.testing.assert_allclose(np.bincount(splits) / len(splits), [0.6, 0.2, 0.2], atol=0.002)


@pytest.mark.parametrize("interactions", [0.0, pytest.param(1.0, marks=pytest.mark.slow)])
@presets
def test_label_shares_are_the_real_ones(name: str, interactions: float) -> None:
    dataset = generate(name, scale=QUICK[name], interactions=interactions)
    expected = np.array(PRESETS[name].label_shares)
    shares = np.bincount(dataset.labels, minlength=len(expected)) / dataset.n_rows
    np.testing.assert_allclose(shares, expected, atol=0.01)
    np.testing.assert_allclose(shares, expected, rtol=0.12)


@pytest.mark.slow
@presets
def test_preparation_drops_constant_features_and_no_query(name: str) -> None:
    dataset = prepared(name)
    assert dataset.n_queries == raw(name).n_queries
    constant = {"mq2007-like": {6, 7, 8, 9, 10, 43}}.get(name, {16, 17, 18, 19, 20})
    assert set(raw(name).feature_ids) - set(dataset.feature_ids) == constant


@pytest.mark.parametrize(("split", "scale", "seeds"), [("test", 0.02, 20), ("train", 1.0, 1)])
def test_test_queries_have_something_relevant_and_training_queries_may_not(
    split: str, scale: float, seeds: int
) -> None:
    for seed in range(seeds):
        dataset = generate("mq2007-like", scale=scale, seed=seed)
        assert dataset.candidates.min() > 5
        best = np.maximum.reduceat(dataset.labels, dataset.query_pointers[:-1])
        without = np.mean(best[dataset.queries_in(split)] == 0)
        assert without == 0 if split == "test" else 0.01 < without < 0.2, "as in the real set"


def test_the_smallest_scale_still_has_all_splits() -> None:
    dataset = generate("mq2007-like", scale=1e-9)
    assert (raw("mq2007-like").name, dataset.name) == ("mq2007-like", "mq2007-like×1e-09")
    assert [len(dataset.queries_in(split)) for split in SPLITS] == [3, 1, 1]


# --- determinism -----------------------------------------------------------------------------


@presets
def test_same_bits_for_any_number_of_threads_and_in_every_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = QUICK[name] / 5
    several = generate(name, scale=scale, seed=3)
    monkeypatch.setattr("ebrank.kernels.threads.available_threads", lambda: 1)
    assert same_bits(several, generate(name, scale=scale, seed=3))


def test_seeds_and_presets_have_draws_of_their_own() -> None:
    made = (("mslr10k-like", 0.003, 0), ("mslr10k-like", 0.003, 1), ("mslr30k-like", 0.001, 0))
    datasets = [generate(name, scale=scale, seed=seed) for name, scale, seed in made]
    rows = min(dataset.n_rows for dataset in datasets)
    body_lengths = [np.log1p(dataset.features[:rows, 10]) for dataset in datasets]
    off_diagonal = np.corrcoef(body_lengths)[np.triu_indices(3, 1)]
    assert (np.abs(off_diagonal) < 0.3).all()  # 0.55 where documents share their draws
    assert len({dataset.labels[:rows].tobytes() for dataset in datasets}) == 3


# --- features --------------------------------------------------------------------------------


# --- calibration -----------------------------------------------------------------------------


@pytest.mark.slow
@presets
def test_bm25_and_a_linear_model_rank_as_well_as_on_the_real_set(name: str) -> None:
    dataset = prepared(name)
    ranked = [mean_ndcg(dataset, by) for by in (dataset.baseline, least_squares_scores(dataset))]
    assert ranked == pytest.approx(TARGETS[name], abs=0.03)


# --- interactions ----------------------------------------------------------------------------


@presets
def test_interactions_change_labels_alone_and_none_are_the_default(name: str) -> None:
    scale = QUICK[name] / 10
    plain = generate(name, scale=scale, seed=2)
    assert same_bits(plain, generate(name, scale=scale, seed=2, interactions=0.0))
    products = generate(name, scale=scale, seed=2, interactions=0.5)
    np.testing.assert_array_equal(products.features, plain.features)
    assert 0.02 < np.mean(products.labels != plain.labels) < 0.5
    assert products.name == f"{plain.name}-interactions0.5"


@pytest.mark.slow
def test_a_linear_model_does_not_hear_interactions() -> None:
    datasets = prepared("mq2007-like"), prepare(generate("mq2007-like", interactions=0.6))
    without, products = (mean_ndcg(data, least_squares_scores(data)) for data in datasets)
    assert products < without - 0.04


def test_many_candidates_are_thousands_of_which_few_are_relevant() -> None:
    data = prepare(generate("many-candidates", scale=0.2))
    assert data.candidates.min() >= 2000
    assert data.candidates.mean() == pytest.approx(5000, rel=0.1)
    assert 0.01 < (data.labels > 0).mean() < 0.05
    assert data.labels.max() == data.max_label == 2


# --- bad arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        ("preset", "mq2007"),
        *(("scale", value) for value in (0.0, -1.0, 11.0, float("nan"), float("inf"), "a", None)),
        *(("interactions", value) for value in (-0.1, 1.1, float("nan"), "a", None)),
        *(("seed", value) for value in (-1, 1.5, "a", None)),
    ],
)
def test_a_wrong_argument_is_refused(option: str, wrong: object) -> None:
    options: dict[str, Any] = {"preset": "mq2007-like", option: wrong}
    said = f"{option} must be .*, not {wrong!r}|no preset {wrong!r}; choose one of mq2007-like, "
    with pytest.raises(ParameterError, match=said):
        generate(**options)
