"""`learn_from=all`: test queries teach, as in a service; validation queries still validate."""

from __future__ import annotations

import numpy as np
import pytest

from ebrank import EBRanker
from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.policy import policies as policy
from ebrank.priors.fitting import Table
from ebrank.rankers import registry
from ebrank.rankers.base import Trial
from ebrank.rankers.ebrank import EBRank
from ebrank.rankers.model import ScoreModel
from ebrank.testing import check_ranker
from tests.simulation.tiny import tiny

CURVE = Examination()


def clicked_on(data: Dataset) -> BehaviorStats:
    """Behavior that the first feature explains."""
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 3, (data.n_rows, 3)) * 10
    chances = np.minimum(CURVE([1, 2, 3]) * (0.1 + 0.5 * data.features[:, :1]), 1.0)
    return BehaviorStats.of(shown=shown, clicks=rng.binomial(shown, chances))


def model_of(text: str, data: Dataset, stats: BehaviorStats) -> ScoreModel:
    trial = Trial(
        dataset=data,
        relevance=np.ones(data.n_rows),
        stats=stats,
        examination=CURVE,
        key=np.uint64(1),
        threads=1,
    )
    return registry.parse(text).learner(trial).update()


@pytest.mark.parametrize("name", ["ebrank", "thompson", "auto"])
def test_all_but_validation_queries_teach(name: str) -> None:
    data = tiny(sizes=[12] * 30)
    stats = clicked_on(data)
    vali = data.rows_in("vali")
    rest = np.setdiff1d(np.arange(data.n_rows), np.arange(data.n_rows)[vali])
    model = model_of(f"{name}:learn_from=all", data, stats)
    queries = data.query_of_rows
    ranker = EBRanker(name, examination=CURVE, threads=1).fit(
        data.features[rest],
        stats[rest],
        groups=queries[rest],
        validation=Table(data.features[vali], stats[vali], queries[vali]),
    )
    assert model.a.tolist() == ranker.prior(data.features).a.tolist()
    assert model.a.tolist() != model_of(name, data, stats).a.tolist()


@pytest.mark.parametrize(("text", "teach"), [("ebrank", False), ("ebrank:learn_from=all", True)])
def test_clicks_on_test_queries_teach_only_if_told_to(text: str, teach: bool) -> None:
    data = tiny(sizes=[12] * 30)
    plain, clicked = clicked_on(data), clicked_on(data)
    test = data.rows_in("test")
    clicked.counts[test, 1] = clicked.counts[test, 0]
    before, after = model_of(text, data, plain), model_of(text, data, clicked)
    assert (before.a.tolist() != after.a.tolist()) is teach


@pytest.mark.slow
@pytest.mark.parametrize("text", ["ebrank:learn_from=all", "auto:learn_from=all"])
def test_it_keeps_the_rules(text: str) -> None:
    check_ranker(registry.parse(text), learns_from_test=True)
    with pytest.raises(AssertionError, match="learns from clicks on test queries"):
        check_ranker(registry.parse(text))


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
