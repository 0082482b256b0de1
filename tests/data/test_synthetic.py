from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from threadpoolctl import threadpool_limits

from ebrank.data.dataset import SPLITS, Dataset
from ebrank.data.preparation import prepare
from ebrank.data.synthetic import PRESETS, generate
from ebrank.errors import ParameterError
from tests.data.ranking_quality import TARGETS, least_squares_scores, mean_ndcg, relevance

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
    assert dataset.feature_names[column] == "BM25, whole document"
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


def test_queries_differ_in_candidates_and_in_how_much_is_relevant() -> None:
    assert np.mean(raw("mq2007-like").candidates == 40) > 0.6
    dataset = raw("mslr10k-like")
    share = np.add.reduceat(dataset.labels > 0, dataset.query_pointers[:-1]) / dataset.candidates
    low, high = np.quantile(share, [0.1, 0.9])
    assert low < 0.3
    assert high > 0.65


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
def test_same_bits_for_any_number_of_threads_and_in_every_run(name: str) -> None:
    scale = QUICK[name] / 5
    alone = generate(name, scale=scale, seed=3, threads=1)
    assert same_bits(alone, generate(name, scale=scale, seed=3, threads=5))
    assert same_bits(alone, generate(name, scale=scale, seed=3))


def test_seeds_and_presets_have_draws_of_their_own() -> None:
    made = (("mslr10k-like", 0.003, 0), ("mslr10k-like", 0.003, 1), ("mslr30k-like", 0.001, 0))
    datasets = [generate(name, scale=scale, seed=seed) for name, scale, seed in made]
    rows = min(dataset.n_rows for dataset in datasets)
    body_lengths = [np.log1p(dataset.features[:rows, 10]) for dataset in datasets]
    off_diagonal = np.corrcoef(body_lengths)[np.triu_indices(3, 1)]
    assert (np.abs(off_diagonal) < 0.3).all()  # 0.55 where documents share their draws
    assert len({dataset.labels[:rows].tobytes() for dataset in datasets}) == 3


# --- features --------------------------------------------------------------------------------


@presets
def test_features_are_on_scales_of_their_own(name: str) -> None:
    features = raw(name).features
    assert np.isfinite(features).all()
    spread = features.std(axis=0, dtype=np.float64)
    spread = spread[spread > 0]
    assert spread.max() / spread.min() > 1e3
    zeros = np.mean(features == 0, axis=0)
    assert np.mean((zeros > 0.5) & (zeros < 0.995)) > 0.15  # many features are mostly zero
    whole = np.all(features == np.floor(features), axis=0)
    assert np.mean(whole) > 0.2  # and many are counts


@presets
def test_features_repeat_each_other_and_some_tell_nothing(name: str) -> None:
    dataset = prepared(name)
    correlation = np.atleast_2d(np.corrcoef(dataset.features[:50_000], rowvar=False))
    off_diagonal = np.abs(correlation[np.triu_indices(len(correlation), 1)])
    assert np.median(off_diagonal) < 0.2
    assert np.mean(off_diagonal > 0.8) > 0.01
    share = np.cumsum(np.linalg.eigvalsh(correlation)[::-1]) / len(correlation)
    assert share[10 - 1] > 0.65  # ten dimensions say most of it
    target = relevance(dataset)
    signal = np.array([abs(np.corrcoef(column, target)[0, 1]) for column in dataset.features.T])
    assert signal.max() > 0.1
    assert np.mean(signal < 0.02) > 0.08


# --- calibration -----------------------------------------------------------------------------


@pytest.mark.slow
@presets
def test_bm25_and_a_linear_model_rank_as_well_as_on_the_real_set(name: str) -> None:
    dataset = prepared(name)
    ranked = [mean_ndcg(dataset, by) for by in (dataset.baseline, least_squares_scores(dataset))]
    assert ranked == pytest.approx(TARGETS[name], abs=0.03)


# --- interactions ----------------------------------------------------------------------------


def boosted_scores(dataset: Dataset) -> npt.NDArray[np.float64]:
    """Predictions of boosted trees, fitted on the training rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    train = dataset.rows_in("train")
    model = HistGradientBoostingRegressor(max_iter=40, early_stopping=False, random_state=0)
    with threadpool_limits(1, "openmp"):  # threads that wait for each other on a busy machine
        model.fit(dataset.features[train], relevance(dataset)[train])
        return np.asarray(model.predict(dataset.features), np.float64)


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
def test_a_linear_model_does_not_hear_interactions_and_trees_do() -> None:
    heard = {}
    for interactions in (0.0, 0.6):
        dataset = prepare(generate("mq2007-like", interactions=interactions))
        models = least_squares_scores(dataset), boosted_scores(dataset)
        heard[interactions] = [mean_ndcg(dataset, scores) for scores in models]
    linear, trees = heard[0.6]
    assert linear < heard[0.0][0] - 0.04
    assert trees > linear + 0.02
    assert abs(heard[0.0][1] - heard[0.0][0]) < 0.02


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
        *(("threads", value) for value in (0, -3, 1.5)),
    ],
)
def test_a_wrong_argument_is_refused(option: str, wrong: object) -> None:
    options: dict[str, Any] = {"preset": "mq2007-like", option: wrong}
    said = f"{option} must be .*, not {wrong!r}|no preset {wrong!r}; choose one of mq2007-like, "
    with pytest.raises(ParameterError, match=said):
        generate(**options)
