"""The linear score plus gradient-boosted trees, which learn how features interact.

    s(x) = w·x + b + Σ_t tree_t(x)

The linear learner comes first. LightGBM (Ke et al. 2017) then grows trees on the family's loss of
the whole score, with its slope and curvature in each row, starting from the linear scores. The loss
of validation rows decides how many; without validation rows, a fifth of the queries is held out.
Trees stay only if they clearly lower that loss (`rows.surely_lower`), so if features do not
interact the learner is the linear one.

A refit keeps the trees until the evidence has grown by a quarter, because growing them costs more
than the rest of a fit. Less evidence may be a part of the same, held out to judge the fit: trees
that have seen it must not stay. Only growing needs LightGBM. The learned state is plain arrays, and
our own kernel computes scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from ebrank.environment.extras import import_extra
from ebrank.errors import ParameterError
from ebrank.kernels.arrays import read_only
from ebrank.kernels.compiled import kernel
from ebrank.kernels.threads import map_blocks
from ebrank.model.prior.learners.linear import Linear
from ebrank.model.prior.rows import BLOCK, Rows, number, surely_lower
from ebrank.parameters import param
from ebrank.typing import Features, Floats, Ints, State

LINEAR = ("weights", "intercept", "ridge")
NODES = ("split_feature", "threshold", "right_child", "leaf_value")
"""Arrays with a number for each node. The nodes of a tree are in order: a split, its whole left
branch (value ≤ threshold), its whole right branch, whose place is `right_child`. At a leaf
`split_feature` is −1, and `leaf_value` counts instead."""
TREES = ("tree_starts", *NODES, "tree_evidence")
"""Besides the nodes: the root of each tree, and how much evidence they grew on."""

GROWTH = 1.25
"""Trees are grown again once there is this many times the evidence they grew on."""
PATIENCE = 20
"""Trees without a lower validation loss before growing ends."""
FEWEST_ROWS = 100
"""With fewer rows than this to learn from or to judge by, no trees grow."""
STEP = 1e-3
LEAST_BEND = 0.1
"""Least second derivative of a row's loss, as a part of the mean."""
GROWING = {
    "max_bin": 63,
    "min_data_in_leaf": 50,
    "feature_pre_filter": False,
    "min_sum_hessian_in_leaf": 25.0,  # in rows of mean curvature, as is the next
    "lambda_l2": 50.0,
    "use_missing": False,
    "metric": "none",
    "verbosity": -1,
    # the same bits everywhere: nothing is drawn, and one thread adds up
    "seed": 0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
}


@dataclass(frozen=True)
class Trees(Linear):
    """Weights, an intercept, and trees if these are not enough."""

    name = "trees"
    help = "The linear score plus boosted trees, where held-out rows prove them better."

    trees: int = param(200, "most trees", at_least=1, at_most=10_000)
    leaves: int = param(16, "leaves of a tree", at_least=2, at_most=256)
    rate: float = param(0.1, "step of each tree", at_least=1e-3, at_most=1)

    def fit(self, rows: Rows, validation: Rows | None, start: State | None) -> State:
        """Return the linear learner's state and the trees."""
        lightgbm = import_extra("lightgbm", extra="trees", purpose="to grow trees")
        linear = super().fit(rows, validation, None if start is None else _part(start, LINEAR))
        evidence = float(rows.evidence[rows.included].sum())
        if start is not None and _keeps(number(start, "tree_evidence"), evidence):
            return {**linear, **_part(start, TREES)}
        grown = self._grown(lightgbm, rows, validation, linear)
        return {**linear, **grown, "tree_evidence": np.array([evidence])}

    def scores(self, state: State, features: Features, threads: int | None = None) -> Floats:
        """Return w·x + b plus the trees' values for each row."""
        scores = super().scores(_part(state, LINEAR), features, threads)
        add_tree_scores(state, features, threads, scores)
        return scores

    def check_state(self, state: State) -> None:
        """Raise unless the state is linear with trees whose every path ends at a leaf."""
        if set(state) != {*LINEAR, *TREES}:
            raise ParameterError(f"a prior of trees needs {', '.join((*LINEAR, *TREES))}")
        super().check_state(_part(state, LINEAR))
        _check_trees(state, n_features=len(state["weights"]))

    def example_state(self, n_features: int) -> State | None:
        """Return weights of 1 and a tree of one split."""
        leaf = {"leaf_value": 1.0}
        split = {"split_feature": 0, "threshold": 0.0, "left_child": leaf, "right_child": leaf}
        linear = super().example_state(n_features)
        return {**(linear or {}), **tree_arrays([split]), "tree_evidence": np.ones(1)}

    def _grown(
        self, lightgbm: ModuleType, rows: Rows, validation: Rows | None, linear: State
    ) -> State:
        """Return trees that explain what linear scores leave; none if they are not better."""
        if validation is None or validation.count == 0:
            folds = rows.folds()
            if not folds:
                return tree_arrays([])
            rows, validation = folds[0]
        if min(rows.count, validation.count) < FEWEST_ROWS:
            return tree_arrays([])
        rows, validation = _included(rows), _included(validation)
        scores = super().scores(linear, rows.features, rows.threads)
        training = _dataset(lightgbm, rows, scores).construct()
        if not any(training.feature_num_bin(j) > 1 for j in range(rows.features.shape[1])):
            return tree_arrays([])  # LightGBM fails if no feature can be split
        before = super().scores(linear, validation.features, rows.threads)
        model = lightgbm.train(
            {
                **GROWING,
                "objective": _objective(rows, scores),
                "num_leaves": self.leaves,
                "learning_rate": self.rate,
            },
            training,
            self.trees,
            valid_sets=[_dataset(lightgbm, validation, before, training)],
            feval=lambda scores, _: ("loss", _losses(validation, scores).mean(), False),
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        best = model.dump_model(num_iteration=model.best_iteration)
        grown = tree_arrays([tree["tree_structure"] for tree in best["tree_info"]])
        after = before.copy()
        add_tree_scores(grown, validation.features, rows.threads, after)
        losses = _losses(validation, after)
        better = surely_lower(losses, _losses(validation, before), validation.included_groups)
        return grown if better else tree_arrays([])


def add_tree_scores(state: State, features: Features, threads: int | None, scores: Floats) -> None:
    """Add the trees' values for each row of features."""
    if not len(state["tree_starts"]):
        return
    matrix = read_only(features)
    trees = (
        _whole(state["tree_starts"]),
        _whole(state["split_feature"]),
        read_only(state["threshold"]),
        _whole(state["right_child"]),
        read_only(state["leaf_value"]),
    )
    map_blocks(
        lambda start, stop: add_leaves(matrix, *trees, start, stop, scores),
        total=len(features),
        block=BLOCK,
        threads=threads,
    )


@kernel
def add_leaves(
    features: Features,
    tree_starts: Ints,
    split_feature: Ints,
    threshold: Floats,
    right_child: Ints,
    leaf_value: Floats,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Add the trees' values for rows start..stop; `NODES` describes the layout."""
    for i in range(start, stop):
        total = 0.0
        for root in tree_starts:
            node = root
            while split_feature[node] >= 0:
                value = float(features[i, split_feature[node]])
                node = node + 1 if value <= threshold[node] else right_child[node]
            total += leaf_value[node]
        out[i] += total


# --- growing -------------------------------------------------------------------------------------


def _keeps(before: float, now: float) -> bool:
    """Return whether trees grown on this much evidence are still good enough.

    The same evidence means another turn of one fit, in which the family has learned meanwhile.
    """
    return now == 0.0 or before < now < before * GROWTH


def _objective(rows: Rows, first: Floats) -> Any:  # noqa: ANN401 (a function for LightGBM)
    """Return the function that returns slope and curvature of each row's loss.

    Both are in units of the mean curvature, so that a leaf's penalty is in rows for every family.
    Curvatures only set the size of steps: those of the first scores will do throughout.
    """
    up, down = (rows.losses_and_slopes(first + step)[1] for step in (STEP, -STEP))
    bends = np.maximum((up - down) / (2.0 * STEP), 0.0)
    unit = bends.mean() or 1.0
    bends = np.maximum(bends / unit, LEAST_BEND)

    def slopes_and_bends(scores: Floats, _: object) -> tuple[Floats, Floats]:
        return rows.losses_and_slopes(scores)[1] / unit, bends

    return slopes_and_bends


def _losses(rows: Rows, scores: Floats) -> Floats:
    return rows.losses_and_slopes(scores)[0]


def _dataset(lightgbm: ModuleType, rows: Rows, scores: Floats, like: Any = None) -> Any:  # noqa: ANN401
    """Return the rows in LightGBM's form; labels are required but unused."""
    labels = np.zeros(len(scores))
    return lightgbm.Dataset(rows.features, labels, like, init_score=scores, params=GROWING)


def _included(rows: Rows) -> Rows:
    """Return the included rows alone."""
    return replace(
        rows,
        features=read_only(rows.features[rows.included]),
        evidence=read_only(rows.evidence[rows.included]),
        included=read_only(np.ones(rows.count, np.bool_)),
        groups=rows.included_groups,
    )


# --- arrays --------------------------------------------------------------------------------------


def _part(state: State, names: tuple[str, ...]) -> State:
    return {name: state[name] for name in names}


def _whole(values: Floats) -> Ints:
    return read_only(values.astype(np.int64))


def tree_arrays(trees: list[Mapping[str, Any]]) -> State:
    """Return trees as LightGBM describes them, each a nested split, as arrays."""
    nodes: list[list[float]] = []

    def append(node: Mapping[str, Any]) -> None:
        if "split_feature" not in node:
            nodes.append([-1.0, 0.0, 0.0, node["leaf_value"]])
            return
        split = [node["split_feature"], node["threshold"], 0.0, 0.0]
        nodes.append(split)
        append(node["left_child"])
        split[NODES.index("right_child")] = len(nodes)
        append(node["right_child"])

    starts = []
    for tree in trees:
        starts.append(len(nodes))
        append(tree)
    columns = np.array(nodes, np.float64).reshape(-1, len(NODES)).T
    arrays = {name: column.copy() for name, column in zip(NODES, columns, strict=True)}
    return {"tree_starts": np.array(starts, np.float64), **arrays}


def _check_trees(state: State, n_features: int) -> None:
    """Raise unless every path leads down, within its tree, to a leaf."""
    if any(state[name].ndim != 1 or not np.isfinite(state[name]).all() for name in TREES):
        raise ParameterError("trees must be rows of finite numbers")
    if state["tree_evidence"].size != 1 or number(state, "tree_evidence") < 0.0:
        raise ParameterError("tree_evidence must be one number of 0 or more")
    starts, feature, right = (
        state[name] for name in ("tree_starts", "split_feature", "right_child")
    )
    count = len(feature)
    if any(len(state[name]) != count for name in NODES):
        raise ParameterError("arrays of nodes must have the same length")
    for name in ("tree_starts", "split_feature", "right_child"):
        if np.any(state[name] != np.floor(state[name])):
            raise ParameterError(f"{name} must hold whole numbers")
    ends = np.append(starts, count)
    if ends[0] != 0 or np.any(np.diff(ends) < 1):
        raise ParameterError("tree_starts must begin at 0 and rise to the number of nodes")
    if np.any((feature < -1) | (feature >= n_features)):
        raise ParameterError(f"split_feature must be −1 or a feature below {n_features}")
    end_of_tree = np.repeat(ends[1:], np.diff(ends).astype(np.int64))
    after_left = np.arange(count) + 2
    if np.any((feature >= 0) & ((right < after_left) | (right >= end_of_tree))):
        raise ParameterError("right_child must come after the left branch, within the tree")
