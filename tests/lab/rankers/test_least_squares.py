from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebrank.lab.rankers.base import Trial
from ebrank.lab.rankers.counterfactual import LeastSquares, LinearModel
from ebrank.lab.rankers.kernels import least_squares

MakeTrial = Callable[..., Trial]
Serve = Callable[[Trial, int], None]
Floats = npt.NDArray[np.float64]

SETTINGS = list(itertools.product(("exposure", "ips"), (False, True)))


def dense_solution(trial: Trial, behavior: str, concatenate: bool) -> Floats:
    """Return (w, w_b if any, w_0) by LAPACK's SVD on the rows, with the ridge as extra rows."""
    data, stats = trial.dataset, trial.sums()
    split = np.repeat(data.query_splits, data.candidates)
    rows = (split == 0) & (stats.shown > 0)
    n, c = stats.shown[rows], stats.clicks[rows]
    target = stats.weighted_clicks[rows] / n
    columns = [data.features[rows].astype(np.float64)]
    if concatenate:
        columns.append((c / stats.exposure[rows] if behavior == "exposure" else target)[:, None])
    z = np.column_stack([*columns, np.ones(len(n))])
    ridge = 1e-6 * np.mean(np.sum(z**2, axis=0))
    penalty = np.sqrt(ridge) * np.eye(z.shape[1])[:-1]
    answer: Floats = np.linalg.lstsq(
        np.vstack([z, penalty]),
        np.append(target, np.zeros(len(penalty))),
        rcond=None,
    )[0]
    return answer


def theta_of(model: LinearModel, concatenate: bool) -> Floats:
    behavior = [model.behavior] if concatenate else []
    return np.array([*model.weights, *behavior, model.intercept])


def test_any_number_of_threads_gives_the_same_bits(
    make_trial: MakeTrial, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ebrank.lab.rankers.counterfactual.BLOCK", 16)
    found = []
    for threads in (1, 2, 5):
        trial = make_trial(4, threads=threads)
        squares = LeastSquares(trial, "exposure")
        for update in range(3):
            serve(trial, update)
            squares.see()
        model = squares.solve(concatenate=True)
        found.append([squares.gram, squares.sides, theta_of(model, True), squares.scores(model)])
    for one, other in itertools.pairwise(found):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)


def column(kind: str, random: npt.NDArray[np.float32], j: int) -> npt.NDArray[np.float32]:
    constants = {"zero": 0.0, "constant": 0.3}
    if kind in constants:
        return np.full(len(random), constants[kind], np.float32)
    scale = {"random": 1.0, "copy": 1.0, "huge": 1e30, "tiny": 1e-30}[kind]
    return np.float32(scale) * random[:, 0 if kind == "copy" else j]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    columns=st.lists(
        st.sampled_from(["random", "zero", "constant", "copy", "huge", "tiny"]),
        min_size=1,
        max_size=6,
    ),
    clicks=st.sampled_from(["some", "none", "always"]),
    seed=st.integers(0, 99),
)
def test_weights_are_finite_whatever_the_features(
    make_trial: MakeTrial, serve: Serve, columns: list[str], clicks: str, seed: int
) -> None:
    trial = make_trial(seed, features=len(columns))
    features = np.column_stack(
        [column(kind, trial.dataset.features, j) for j, kind in enumerate(columns)]
    )
    trial = replace(trial, dataset=replace(trial.dataset, features=features))
    serve(trial, seed)
    if clicks != "some":
        trial.stats.counts[:, 0, 1:] = 0  # all at the top, where C = c
        trial.stats.counts[:, 1] = trial.stats.counts[:, 0] if clicks == "always" else 0
    for behavior, concatenate in SETTINGS:
        squares = LeastSquares(trial, behavior)  # type: ignore[arg-type]
        squares.see()
        model = squares.solve(concatenate=concatenate)
        assert np.all(np.isfinite(theta_of(model, concatenate)))
        assert np.all(np.isfinite(squares.scores(model)))
        if clicks != "some" and "huge" not in columns:
            level = 0.0 if clicks == "none" else 1.0
            np.testing.assert_allclose(squares.scores(model), level, atol=1e-6)


def test_sums_are_not_rounded_to_single_precision() -> None:
    features = np.full((100_000, 1), 0.1, np.float32)
    rows, ones = np.arange(100_000), np.ones(100_000)
    x = float(np.float32(0.1))
    gram = least_squares.gram_sum(features, rows, ones, 0, 100_000)
    sums = least_squares.side_sums(features, rows, ones, ones, ones, 0, 100_000)
    np.testing.assert_allclose(gram[0, 0], 100_000 * x * x, rtol=1e-11)
    np.testing.assert_allclose(sums[:, 0], 100_000 * x, rtol=1e-11)
