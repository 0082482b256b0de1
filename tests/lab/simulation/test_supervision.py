"""A model that is none is refused before compiled code reads it, and failures name the ranker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from ebrank.errors import DataError, ParameterError
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import (
    FIXED,
    Ranker,
    Refit,
    ScoreModel,
    Trial,
    TrialLearner,
    fixed_model,
)
from ebrank.lab.rankers.bm25 import BM25
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial, simulate
from ebrank.lab.simulation.supervision import check_model
from ebrank.model.formula import Formula, Score
from ebrank.model.prior import ItemPrior
from tests.lab.simulation.tiny import tiny

SHORT = SimulationConfig(updates=2, sessions=60)
LONG = SimulationConfig(updates=2, sessions=600)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return tiny()


@pytest.fixture
def model(dataset: Dataset) -> ScoreModel:
    ones = np.ones(dataset.n_rows)
    return replace(fixed_model(ones), prior=ItemPrior(ones, ones), weights=np.ones(3))


@dataclass(frozen=True)
class Mine(Ranker):
    """Does whatever a test wants at its second update."""

    name = "mine"
    help = "A test's."
    settings = ("none",)

    act: Callable[[], Any] = field(default=lambda: None, metadata={"help": ""})

    def __post_init__(self) -> None: ...

    def __str__(self) -> str:
        return "mine:Mine"

    def learner(self, trial: Trial) -> TrialLearner:
        return MyLearner(self, trial)


@dataclass
class MyLearner:
    ranker: Mine
    trial: Trial
    updates: int = 0

    def update(self) -> ScoreModel:
        self.updates += 1
        if self.updates == 2:
            return self.ranker.act()  # type: ignore[no-any-return]
        return fixed_model(np.ones(self.trial.dataset.n_rows))


def fail(problem: Exception) -> Callable[[], None]:
    def act() -> None:
        raise problem

    return act


def test_every_model_is_checked_and_the_ranker_named(dataset: Dataset) -> None:
    ranker = Mine(lambda: fixed_model(np.ones(3)))
    with pytest.raises(ParameterError, match=f"^mine:Mine: 3 scores for {dataset.n_rows} rows$"):
        simulate(dataset, ranker, SHORT)
    with pytest.raises(ParameterError, match=r"^mine:Mine: update returns NoneType, not a"):
        simulate(dataset, Mine(), SHORT)


def test_a_failure_names_the_ranker_and_keeps_its_cause(dataset: Dataset) -> None:
    problem = ValueError("no good")
    with pytest.raises(ParameterError) as caught:
        simulate(dataset, Mine(fail(problem)), SHORT)
    assert str(caught.value) == "mine:Mine failed while learning: ValueError: no good"
    assert caught.value.__cause__ is problem


def test_what_is_told_already_is_not_told_again(dataset: Dataset) -> None:
    problem = DataError("no such file", path="mine.csv")
    with pytest.raises(DataError) as caught:
        simulate(dataset, Mine(fail(problem)), SHORT)
    assert caught.value is problem


def test_a_bug_of_our_own_is_left_as_it_is(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BM25, "learner", lambda self, trial: None)
    with pytest.raises(AttributeError):
        simulate(dataset, BM25(), SHORT)


def test_a_ranker_may_know_one_dataset_only(dataset: Dataset) -> None:
    @dataclass(frozen=True)
    class Known(Mine):
        def learner(self, trial: Trial) -> TrialLearner:
            return Refit(lambda: fixed_model(np.arange(float(dataset.n_rows))))

    (result,) = parallel.run(dataset, [Known()], SHORT, trials=1)
    alone = run_trial(dataset, Known(), SHORT, seed=0, trial=0)
    assert result.trials[0].test_ndcg.tolist() == alone.test_ndcg.tolist()


def unusual(a: float) -> float:
    print(globals())
    return a


def plain(a: float) -> float:
    return a


SHIFTED = Formula(lambda a, shift: a + shift, "shift")
N = tiny().n_rows
CASES: list[tuple[dict[str, Any], str]] = [
    ({"a": [1.0]}, "a must be a NumPy array of float64, with one axis"),
    ({"a": np.ones((N, 1))}, "a must be a NumPy array of float64"),
    ({"a": np.empty(0)}, "0 scores for "),
    ({"b": np.ones(2)}, "2 second numbers for "),
    ({"b": np.array([np.inf])}, r"b\[0\] is inf, not a finite number"),
    ({"prior": ItemPrior(np.ones(N), np.full(2, 5.0))}, "2 second numbers for "),
    ({"weights": np.array([1.0, np.nan])}, r"weights\[1\] is nan, not a finite number"),
    ({"offline": SHIFTED.bind(shift=np.nan)}, "the parameters of offline must be finite numbers"),
    ({"serve": lambda a: a}, "serve must be a Score, as Formula.bind returns, not function"),
    ({"serve": SHIFTED}, "serve must be a Score, as Formula.bind returns, not Formula"),
    (
        {"offline": Formula(unusual).bind()},
        "offline: formula cannot be compiled: Untyped .*'globals'",
    ),
    (
        {"serve": Formula(lambda a: plain(a)).bind()},
        "Untyped global name 'plain': .* Decorate the function that it calls with @numba.njit",
    ),
    (
        {"offline": Formula(np.tanh).bind()},
        "offline: <ufunc 'tanh'> is not a plain function",
    ),
    ({"serve": Formula(lambda a, c: a).bind()}, "takes 'c', which is neither a quantity"),
]


@pytest.mark.parametrize(("changes", "said"), CASES, ids=[case[1][:30] for case in CASES])
def test_what_kernels_index_is_checked(
    dataset: Dataset, model: ScoreModel, changes: dict[str, Any], said: str
) -> None:
    check_model(model, dataset)
    with pytest.raises(ParameterError, match=said):
        check_model(replace(model, **changes), dataset)


def test_b_may_be_one_for_all_or_one_each(dataset: Dataset, model: ScoreModel) -> None:
    check_model(replace(model, b=np.ones(dataset.n_rows)), dataset)
    check_model(replace(model, cold=FIXED, prior=None, weights=None), dataset)


# --- scores that are no numbers ------------------------------------------------------------------


def ranking_by(serve: Score, offline: Score = FIXED, **changes: Any) -> Mine:  # noqa: ANN401
    """Return a ranker whose second model ranks by a formula."""
    n = tiny().n_rows
    model = replace(fixed_model(np.linspace(0.0, 1.0, n)), serve=serve, offline=offline)
    return Mine(lambda: replace(model, **changes))


HALF, FIFTY, ONE = np.uint64(32), np.uint64(50), np.uint64(1)
RATE = Formula(lambda clicks, shown: clicks / shown).bind()
LOGARITHM = Formula(lambda a: np.log(a)).bind()
LATE = Formula(lambda a, shown: a / (0.0 if 7 <= shown < 900 else 1.0)).bind()
ONCE = Formula(lambda a, shown: a + 0.0 / (shown - 55.0)).bind()
UNLUCKY = Formula(lambda a, clicks, shown: np.sqrt(clicks + 0.5 - (2 < shown < 900))).bind()
DRAWN = Formula(lambda a, key: a / (1.0 if (key >> HALF) % FIFTY != ONE else 0.0)).bind()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranker", "said"),
    [
        (
            ranking_by(RATE),
            "its formula serve gives nan, not a finite score, to an item with "
            "shown 0, clicks 0, weighted_clicks 0, exposure 0, a .*, b 0$",
        ),
        (ranking_by(FIXED, RATE), "its formula offline gives nan, .* with shown 0, clicks 0, "),
        (ranking_by(FIXED, FIXED, cold=RATE), "its formula cold gives nan, .* with shown 0, "),
        (ranking_by(LOGARITHM), "its formula serve gives -inf, .*, a 0, b 0$"),
        (ranking_by(Formula(lambda a: a / 0.0).bind()), "its formula serve gives (nan|inf), .*"),
        (
            ranking_by(Formula(lambda exposure, clicks: np.sqrt(exposure - clicks)).bind()),
            r"its formula serve gives nan, .* with shown \d+, clicks [1-9]",
        ),
        (
            ranking_by(Formula(lambda shown: 1e308 * shown).bind()),
            r"its formula serve gives inf, .* with shown \d+",
        ),
        (ranking_by(LATE), r"its formula serve gives (nan|inf), .* with shown \d+, clicks \d+"),
        (ranking_by(FIXED, LATE), r"its formula offline gives (nan|inf), .* with shown \d+, "),
        (ranking_by(UNLUCKY), r"its formula serve gives nan, .* with shown \d+, clicks 0"),
        (ranking_by(ONCE), "(its formula serve gives|a formula gave a score that is not a finite)"),
        (
            ranking_by(DRAWN, noisy=True),
            "a formula gave a score that is not a finite number; the counts",
        ),
    ],
)
def test_every_score_that_is_used_is_a_number(dataset: Dataset, ranker: Mine, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^mine:Mine: {said}") as caught:
        simulate(dataset, ranker, LONG)
    assert isinstance(caught.value.__cause__, FloatingPointError | None)
