from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import EBRanker, LinearPrior
from ebrank.behavior import BehaviorStats, Estimator
from ebrank.data.dataset import Dataset
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.ebrank import FORMULAS
from ebrank.rankers.model import ScoreModel
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from tests.simulation.tiny import tiny

COUNT = st.integers(0, 10**6).map(float)
POSITIVE = st.floats(1e-4, 1e6)
EPSILON = st.floats(0, 1e4)


@given(POSITIVE, POSITIVE, COUNT, COUNT, st.floats(0, 1e7), st.floats(0, 1e6), EPSILON)
def test_formulas_are_the_papers(
    alpha: float, beta: float, n: float, c: float, weighted: float, e: float, epsilon: float
) -> None:
    behavior = (alpha, beta, n, c, weighted, e, epsilon, 0.0, 0.0, np.uint64(0))

    def score(clicks: float, trials: float) -> float:
        estimate = (clicks + alpha) / (trials + alpha + beta)
        return estimate + epsilon * estimate / (e + alpha + beta) ** 2

    expected = {
        ("both", "ips"): score(weighted, n),
        ("both", "exposure"): score(c, e),
        ("prior", "ips"): alpha / (alpha + beta),
        ("prior", "exposure"): alpha / (alpha + beta),
        ("behavior", "ips"): weighted / n if n else weighted,
        ("behavior", "exposure"): c / e if e else 0.0,
    }
    assert set(FORMULAS) == set(expected)
    for part, formula in FORMULAS.items():
        assert formula(*behavior) == pytest.approx(expected[part], rel=1e-12), part
        assert formula.compiled.ctypes(*behavior) == formula(*behavior)


def clicked_on(data: Dataset, seed: int = 0) -> BehaviorStats:
    """Behavior that the first feature explains, on two thirds of the rows."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 3, data.n_rows) * 20
    clicks = rng.binomial(shown, 0.1 + 0.5 * data.features[:, 0])
    sums = {"weighted_clicks": clicks / 0.7, "exposure": shown * 0.7}
    return BehaviorStats.from_arrays({"shown": shown, "clicks": clicks, **sums})


def model_of(text: str, data: Dataset, stats: BehaviorStats) -> ScoreModel:
    trial = Trial(data, np.ones(data.n_rows), stats, np.uint64(1), threads=1)
    return registry.parse(text).learner(trial).update()


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_the_prior_learns_from_train_and_stops_by_validation(estimator: Estimator) -> None:
    data = tiny(sizes=[12] * 30)
    stats = clicked_on(data)
    model = model_of(f"ebrank:estimator={estimator}", data, stats)
    train, vali = data.rows_in("train"), data.rows_in("vali")
    prior = LinearPrior(5.0, estimator=estimator, warm_start=True, threads=1).fit(
        data.features[train], stats[train], validation=(data.features[vali], stats[vali])
    )
    assert model.a.tolist() == prior.predict(data.features).alpha.tolist()
    assert model.weights is not None
    assert prior.weights_ is not None
    assert model.weights.tolist() == prior.weights_.tolist()
    assert model.weights[0] > 1.0


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_behavior_alone_needs_no_prior(
    estimator: Estimator, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tiny()
    monkeypatch.setattr(LinearPrior, "fit", lambda *_, **__: pytest.fail("fitted in vain"))
    model = model_of(f"ebrank:part=behavior,estimator={estimator}", data, clicked_on(data))
    assert model.weights is None
    assert len(model.a) == data.n_rows
    assert model.serve is model.offline is FORMULAS["behavior", estimator]


def test_clicks_on_test_queries_teach_nothing() -> None:
    data = tiny(sizes=[12] * 30)
    one, other = clicked_on(data), clicked_on(data)
    test = data.rows_in("test")
    other.clicks[test] = other.shown[test]
    other.weighted_clicks[test] = other.shown[test]
    before, after = model_of("ebrank", data, one), model_of("ebrank", data, other)
    assert before.a.tolist() == after.a.tolist()


def test_offline_there_is_no_bonus() -> None:
    data = tiny()
    model = model_of("ebrank:epsilon=7", data, clicked_on(data))
    assert model.serve_parameters[0] == 7.0
    assert model.offline_parameters[0] == 0.0


def test_without_any_behavior_all_items_are_equal() -> None:
    data = tiny()
    model = model_of("ebrank", data, BehaviorStats.zeros(data.n_rows))
    assert set(model.a.tolist()) == {1.0}
    assert set(model.b.tolist()) == {5.0}


def test_exploring_pays_where_behavior_is_scarce() -> None:
    """Items whose features say nothing: without a bonus, good newcomers stay unseen."""
    rng = np.random.default_rng(3)
    sizes = [40] * 40
    features = rng.random((sum(sizes), 3), dtype=np.float32)
    labels = (rng.random(sum(sizes)) < 0.15).astype(np.int8) * 2
    data = tiny(sizes=sizes, features=features, labels=labels)
    config = SimulationConfig(updates=5, sessions=4000)
    greedy, curious = (
        run_trial(data, registry.parse(f"ebrank:epsilon={epsilon}"), config, seed=1, trial=0)
        for epsilon in (0, 20)
    )
    assert curious.warm_ndcg[-1, 0] > greedy.warm_ndcg[-1, 0]


@pytest.mark.parametrize("estimator", ["ips", "exposure"])
def test_the_ranker_that_is_simulated_is_the_one_that_is_served(estimator: Estimator) -> None:
    """The lab's model and the library's estimator give every item the same score, to the bit."""
    data = tiny(3, [9, 12, 7, 11])
    stats = clicked_on(data)
    model = model_of(f"ebrank:epsilon=7,early_stopping=false,estimator={estimator}", data, stats)
    train = data.rows_in("train")
    library = EBRanker(epsilon=7.0, estimator=estimator).fit(data.features[train], stats[train])
    for query in range(data.n_queries):
        rows = data.rows_of(query)
        ranking = library.rank(data.features[rows], stats[rows])
        for item, score in zip(ranking.order, ranking.scores, strict=True):
            row = rows.start + item
            behavior = [float(a[row]) for a in stats.to_arrays().values()]
            numbers = (model.a[row], model.b[0], *behavior, *model.serve_parameters, np.uint64(0))
            assert model.serve.compiled.ctypes(*numbers) == score
