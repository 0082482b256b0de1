from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from ebrank import BehaviorStats, EBRanker, ParameterError
from ebrank.addons.trees import (
    LINEAR,
    NODES,
    TREES,
    Trees,
    add_tree_scores,
    tree_arrays,
)
from ebrank.errors import MissingExtraError
from ebrank.evidence import CLICKS
from ebrank.model.policy import model_file
from ebrank.model.policy.policies import make, parse
from ebrank.service.core.models import Model, warm_up
from ebrank.testing import check_policy
from ebrank.typing import Features, Floats, State
from tests.model.prior.learners.test_linear import awkward
from tests.model.prior.made_up import clicked, fitted, learned, made_up, rows_of

pytestmark = pytest.mark.slow


def interacting(rows: int, seed: int, mean: float = 8.0) -> tuple[Features, BehaviorStats]:
    """Return items that users like if both or neither of two features are high."""
    rng = np.random.default_rng(seed)
    features = rng.random((rows, 4), dtype=np.float32)
    alike = (features[:, 0] > 0.5) == (features[:, 1] > 0.4)
    return features, clicked(rng, 0.1 + 0.5 * alike + 0.2 * features[:, 2], mean)


def grown() -> tuple[State, Features, BehaviorStats]:
    """Return a state with trees, and what they grew on."""
    features, stats = interacting(3000, seed=1)
    state = fitted(features, stats, learner="trees")
    assert len(state["tree_starts"]) > 3
    return state, features, stats


def tree_scores(state: State, features: Features) -> Floats:
    scores = np.zeros(len(features))
    add_tree_scores(state, features, None, scores)
    return scores


# --- what they learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ["ips", "exposure", "exact"])
@pytest.mark.parametrize("watched", [True, False])
def test_trees_hear_what_a_linear_score_cannot(estimator: str, watched: bool) -> None:
    validation = interacting(2000, seed=2) if watched else None
    features, stats = interacting(4000, seed=1)
    unseen = interacting(4000, seed=3)
    losses = {}
    for learner in ("linear", "trees"):
        policy = make(estimator=estimator, learner=learner)
        state = fitted(features, stats, validation=validation, estimator=estimator, learner=learner)
        scores = policy.learner.scores(state, unseen[0])
        losses[learner] = rows_of(*unseen, estimator=estimator).losses_and_slopes(scores)[0]
    difference = losses["linear"] - losses["trees"]
    assert difference.mean() > 10.0 * difference.std() / np.sqrt(len(difference))


@pytest.mark.parametrize("watched", [True, False])
def test_without_interactions_the_learner_is_the_linear_one(watched: bool) -> None:
    weights = np.array([1.0, -1.0, 0.5])
    for seed in range(4):
        features, stats = made_up(3000, 3, seed=seed, weights=weights)
        validation = made_up(1000, 3, seed=50 + seed, weights=weights) if watched else None
        state = fitted(features, stats, validation=validation, learner="trees")
        linear = fitted(features, stats, validation=validation)
        assert len(state["tree_starts"]) == 0
        for name in LINEAR:
            np.testing.assert_array_equal(state[name], linear[name])


def test_few_rows_grow_no_trees() -> None:
    features, stats = interacting(120, seed=1, mean=500.0)
    for validation in (None, interacting(60, seed=2), (features[:50], BehaviorStats.zeros(50))):
        state = fitted(features, stats, validation=validation, learner="trees")
        assert len(state["tree_starts"]) == 0
    state = fitted(features, BehaviorStats.zeros(120), learner="trees")
    assert len(state["tree_starts"]) == 0
    assert state["tree_evidence"].tolist() == [0.0]


@pytest.mark.parametrize("watched", [True, False])
def test_any_number_of_threads_gives_the_same_bits(watched: bool) -> None:
    features, stats = interacting(20_000, seed=4)
    validation = interacting(1500, seed=8) if watched else None
    first, *others = [
        fitted(features, stats, validation=validation, learner="trees", trees=20, threads=threads)
        for threads in (1, 2, 5)
    ]
    assert len(first["tree_starts"]) > 10
    scores = Trees().scores(first, features, 1)
    for state in others:
        for name, values in first.items():
            np.testing.assert_array_equal(state[name], values)
        np.testing.assert_array_equal(Trees().scores(state, features, 5), scores)


@settings(max_examples=20)
@given(awkward())
def test_no_data_gives_a_number_that_is_not_one(data: tuple[Features, BehaviorStats]) -> None:
    features, stats = data
    many = np.tile(features, (20, 1)), BehaviorStats(np.tile(stats.counts, (20, 1, 1)))
    state = fitted(*many, validation=many, learner="trees", trees=10)
    Trees().check_state(state)
    assert np.isfinite(Trees().scores(state, features)).all()


# --- refits --------------------------------------------------------------------------------------


def test_a_refit_keeps_the_trees_until_the_evidence_has_grown_by_a_quarter() -> None:
    features, stats = interacting(4000, seed=1)
    state = fitted(features[:3000], stats[:3000], learner="trees")
    more = fitted(features[:3500], stats[:3500], start=state, learner="trees")
    for name in TREES:
        np.testing.assert_array_equal(more[name], state[name])
    assert not np.array_equal(more["weights"], state["weights"])
    most = fitted(features, stats, start=more, learner="trees")
    assert most["tree_evidence"] > 1.25 * state["tree_evidence"]
    assert not np.array_equal(most["leaf_value"], state["leaf_value"])
    less = fitted(features[:2000], stats[:2000], start=most, learner="trees")
    assert less["tree_evidence"] < state["tree_evidence"]


def test_trees_stay_where_there_is_nothing_to_learn_from() -> None:
    state, features, _ = grown()
    again = fitted(features, BehaviorStats.zeros(len(features)), start=state, learner="trees")
    for name, values in state.items():
        np.testing.assert_array_equal(again[name], values)


def test_every_turn_of_a_first_fit_grows_trees_anew() -> None:
    features, stats = interacting(3000, seed=1)
    parts: dict[str, Any] = {"estimator": "exact", "family": "shape", "bonus": "horizon"}
    first = fitted(features, stats, learner="trees", **parts)
    state = learned("auto:learner=trees", features, stats)
    assert state["tree_evidence"] == first["tree_evidence"]
    assert not np.array_equal(state["leaf_value"], first["leaf_value"])


# --- arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 8])
def test_the_arrays_say_what_lightgbm_says(digits: int) -> None:
    import lightgbm

    rng = np.random.default_rng(1)
    features = np.round(rng.normal(size=(5000, 6)), digits).astype(np.float32)
    features[::7, 2] = 0.0
    target = np.sin(3.0 * features[:, 0]) * features[:, 1] + (features[:, 2] > 0.1)
    model = lightgbm.train(
        {"num_leaves": 31, "use_missing": False, "verbosity": -1, "num_threads": 1},
        lightgbm.Dataset(features, target),
        60,
    )
    trees = [tree["tree_structure"] for tree in model.dump_model()["tree_info"]]
    state = tree_arrays(trees)
    splits = state["split_feature"] >= 0
    splits &= np.abs(state["threshold"]) > 1e-34  # LightGBM takes numbers up to 1e-35 for 0
    thresholds = state["threshold"][splits].astype(np.float32)
    edges = np.repeat(thresholds[:, None], 6, axis=1)
    for own in (features, edges, np.nextafter(edges, np.float32(np.inf)), 1e6 * features):
        theirs: Any = model.predict(own)
        np.testing.assert_allclose(tree_scores(state, own), theirs, atol=1e-12, rtol=0)


def test_a_tree_may_be_a_single_leaf() -> None:
    state = tree_arrays([{"leaf_value": 2.0}, {"leaf_value": -0.5}])
    assert tree_scores(state, np.zeros((3, 1), np.float32)).tolist() == [1.5] * 3


def good() -> dict[str, Floats]:
    """Return a state of two features with two trees: a split in a split, and a split."""
    leaves = [{"leaf_value": value} for value in (1.0, 2.0, 3.0)]
    inner = {
        "split_feature": 1,
        "threshold": 0.5,
        "left_child": leaves[0],
        "right_child": leaves[1],
    }
    outer = {**inner, "split_feature": 0, "left_child": inner, "right_child": leaves[2]}
    linear = {"weights": np.zeros(2), "intercept": np.zeros(1), "ridge": np.ones(1)}
    return {**linear, **tree_arrays([outer, inner]), "tree_evidence": np.ones(1)}


def test_trees_are_laid_out_branch_by_branch() -> None:
    state = good()
    assert state["tree_starts"].tolist() == [0, 5]
    assert state["split_feature"].tolist() == [0, 1, -1, -1, -1, 1, -1, -1]
    assert state["right_child"].tolist() == [4, 3, 0, 0, 0, 7, 0, 0]
    assert state["leaf_value"].tolist() == [0, 0, 1, 2, 3, 0, 1, 2]
    points = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [0.5, 0.5]], np.float32)
    assert Trees().scores(state, points).tolist() == [2.0, 4.0, 4.0, 5.0, 2.0]


def changed(name: str, place: int, value: float) -> dict[str, Floats]:
    state = good()
    state[name][place] = value
    return state


MALFORMED = {
    "a circle": changed("right_child", 1, 0),
    "a right branch that is the left one": changed("right_child", 0, 1),
    "a child in another tree": changed("right_child", 1, 6),
    "a child past the end": changed("right_child", 5, 8),
    "a child between two nodes": changed("right_child", 0, 3.5),
    "a huge child": changed("right_child", 0, 1e30),
    "a split at the end of all": changed("split_feature", 7, 0),
    "a feature that there is not": changed("split_feature", 0, 2),
    "a feature below the leaves' mark": changed("split_feature", 0, -2),
    "half a feature": changed("split_feature", 0, 0.5),
    "a threshold that is not a number": changed("threshold", 0, np.nan),
    "an endless leaf": changed("leaf_value", 2, np.inf),
    "no first tree": changed("tree_starts", 0, 1),
    "an empty tree": changed("tree_starts", 1, 0),
    "a tree past the end": changed("tree_starts", 1, 8),
    "a tree between two nodes": changed("tree_starts", 1, 4.5),
    "no trees but nodes": {**good(), "tree_starts": np.zeros(0)},
    "trees but no nodes": {**good(), **{name: np.zeros(0) for name in NODES}},
    "a leaf too few": {**good(), "leaf_value": np.zeros(7)},
    "a table of thresholds": {**good(), "threshold": np.zeros((8, 1))},
    "negative evidence": changed("tree_evidence", 0, -1),
    "evidence twice": {**good(), "tree_evidence": np.ones(2)},
    "fewer weights than features": {**good(), "weights": np.zeros(1)},
    "a linear state": {name: good()[name] for name in LINEAR},
    "trees alone": {name: good()[name] for name in TREES},
    "something more": {**good(), "extra": np.zeros(1)},
    "a negative ridge": {**good(), "ridge": -np.ones(1)},
}


@pytest.mark.parametrize("state", MALFORMED.values(), ids=MALFORMED)
def test_states_that_no_fit_returns_are_refused(state: dict[str, Floats]) -> None:
    learner = Trees()
    learner.check_state(good())
    with pytest.raises(ParameterError):
        learner.check_state(state)


def test_what_is_fitted_or_an_example_passes_the_check() -> None:
    learner = Trees()
    learner.check_state(grown()[0])
    example = learner.example_state(3)
    assert example is not None
    learner.check_state(example)
    assert np.isfinite(learner.scores(example, np.ones((2, 3), np.float32))).all()
    assert len(example["tree_starts"]) == 1


# --- together with the rest ----------------------------------------------------------------------


@pytest.mark.parametrize("text", ["ebrank:learner=trees", "auto:learner=trees,leaves=4,rate=0.2"])
def test_policies_with_trees_conform(text: str) -> None:
    check_policy(parse(text))


def test_fitting_needs_the_extra_and_serving_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    state, features, stats = grown()
    ranker = EBRanker(make(learner="trees"))
    ranker.state_ = state
    expected = ranker.rank(features, stats).scores
    for module in [name for name in sys.modules if name.partition(".")[0] == "lightgbm"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"grow trees .*: pip install 'ebrank\[trees\]'"):
        ranker.fit(features, stats)
    again = model_file.from_bytes(model_file.to_bytes(ranker), "a copy")
    np.testing.assert_array_equal(again.rank(features, stats).scores, expected)


def test_a_server_warms_up_with_trees() -> None:
    warm_up(Model(0, EBRanker(parse("ebrank:learner=trees")), True), CLICKS)
