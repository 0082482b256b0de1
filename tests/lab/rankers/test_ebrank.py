from __future__ import annotations

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import ScoreModel, Trial
from ebrank.lab.rankers.ebrank import EBRank
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.model.policy import policies as policy
from ebrank.model.policy.policies import Policy
from ebrank.model.prior import ItemPrior
from ebrank.model.prior.learners.linear import Linear
from ebrank.model.prior.rows import Observations
from ebrank.model.scoring import scores
from ebrank.testing import check_ranker
from tests.lab.simulation.tiny import tiny

CURVE = Examination()


def clicked_on(data: Dataset, seed: int = 0) -> BehaviorStats:
    """Behavior that the first feature explains, on two thirds of the rows."""
    rng = np.random.default_rng(seed)
    shown = rng.integers(0, 3, (data.n_rows, 3)) * 10 * rng.integers(0, 2, (data.n_rows, 1))
    chances = np.minimum(CURVE([1, 2, 3]) * (0.1 + 0.5 * data.features[:, :1]), 1.0)
    return BehaviorStats.of(shown=shown, clicks=rng.binomial(shown, chances))


def model_of(text: str, data: Dataset, stats: BehaviorStats) -> ScoreModel:
    trial = Trial(data, np.ones(data.n_rows), stats, CURVE, np.uint64(1), threads=1)
    return registry.parse(text).learner(trial).update()


@pytest.mark.parametrize("learn_from", ["train", "all"])
@pytest.mark.parametrize(
    "text",
    ["ebrank:estimator=ips", "ebrank:estimator=exact", "thompson:ridge=auto", "auto:part=both"],
)
def test_the_prior_is_the_librarys_and_validation_queries_never_teach(
    text: str, learn_from: str
) -> None:
    """With `learn_from=all` test queries teach too, as in a service."""
    data = tiny(sizes=[12] * 30)
    stats, queries = clicked_on(data), data.query_of_rows
    train, vali = (np.arange(data.n_rows)[data.rows_in(split)] for split in ("train", "vali"))
    rows = train if learn_from == "train" else np.setdiff1d(np.arange(data.n_rows), vali)
    model = model_of(f"{text},learn_from={learn_from}", data, stats)
    ranker = EBRanker(text, examination=CURVE, threads=1).fit(
        data.features[rows],
        stats[rows],
        groups=queries[rows],
        validation=Observations(data.features[vali], stats[vali], queries[vali]),
    )
    assert model.a.tolist() == ranker.prior(data.features).a.tolist()
    assert model.weights is not None
    assert ranker.state_ is not None
    assert model.weights.tolist() == ranker.state_["weights"].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["ebrank:learn_from=all", "auto:learn_from=all"])
def test_clicks_on_test_queries_teach_if_told_to(text: str) -> None:
    check_ranker(registry.parse(text), learns_from_test=True)
    with pytest.raises(AssertionError, match="learns from clicks on test queries"):
        check_ranker(registry.parse(text))


@pytest.mark.parametrize("estimator", ["ips", "exposure", "exact"])
def test_behavior_alone_needs_no_prior(estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tiny()
    monkeypatch.setattr(Linear, "fit", lambda *_, **__: pytest.fail("fitted in vain"))
    model = model_of(f"ebrank:part=behavior,estimator={estimator}", data, clicked_on(data))
    assert model.weights is None
    assert model.prior is None
    assert len(model.a) == data.n_rows
    assert not model.noisy


@pytest.mark.parametrize("text", ["ebrank:epsilon=7", "thompson", "ebrank:estimator=exact"])
def test_offline_there_is_no_bonus(text: str) -> None:
    data = tiny()
    stats = clicked_on(data)
    model = model_of(text, data, stats)
    prior = ItemPrior(model.a, model.b)
    keys = np.arange(data.n_rows, dtype=np.uint64)
    greedy = model_of(f"{text.partition(':')[0]}:bonus=none", data, stats)
    if "exact" in text:
        greedy = model_of("ebrank:estimator=exact,bonus=none", data, stats)
    served = scores(model.serve, prior, stats, CURVE, keys)
    offline = scores(model.offline, prior, stats, CURVE, keys)
    np.testing.assert_array_equal(offline, scores(greedy.serve, prior, stats, CURVE, keys))
    assert np.all(served != offline)
    assert text == "thompson" or np.all(served > offline)


def test_a_ranker_is_its_policy() -> None:
    ranker = registry.parse("thompson:beta=2,ridge=0.01")
    assert isinstance(ranker.policy, Policy)  # type: ignore[attr-defined]
    assert str(ranker) == str(ranker.policy) == "thompson:beta=2,ridge=0.01"  # type: ignore[attr-defined]
    assert (ranker.value("bonus"), ranker.value("ridge")) == ("draw", 0.01)
    changed = ranker.with_parameters(ridge=None, bonus="marginal_certainty")
    assert str(changed) == "thompson:bonus=marginal_certainty,beta=2"
    assert registry.parse(str(changed)) == changed


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


def test_the_lab_alone_knows_the_parameter() -> None:
    ranker = registry.parse("ebrank:learn_from=all,epsilon=5")
    assert str(ranker) == "ebrank:epsilon=5,learn_from=all"
    assert ranker.value("learn_from") == "all"
    assert str(ranker.with_parameters(epsilon=20.0)) == "ebrank:learn_from=all"
    assert str(ranker.with_parameters(learn_from="train")) == "ebrank:epsilon=5"
    assert ranker != ranker.with_parameters(learn_from="train")
    assert [parameter.name for parameter in ranker.parameters()][-1] == "learn_from"
    with pytest.raises(ParameterError, match="ebrank has no parameter 'learn_from'"):
        policy.parse("ebrank:learn_from=all")


def test_a_wrong_source_is_refused() -> None:
    with pytest.raises(ParameterError, match="ebrank: learn_from takes train or all, not 'test'"):
        registry.parse("ebrank:learn_from=test")
    with pytest.raises(ParameterError, match="learn_from takes train or all"):
        EBRank(learn_from="test")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="'learnfrom'; did you mean learn_from"):
        registry.parse("ebrank:learnfrom=all")
