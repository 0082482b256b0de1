"""Do the simulated clicks have the probabilities they should, whichever ranker made the lists?

Draws are seeded, so a test passes always or never. A z beyond ±4.5 would befall a right simulator
with one seed in 150,000. The check is also shown to notice a wrong one: users who click a tenth
more, or who examine by another curve than rankers believe.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest

from ebrank.equations import relevance_probability
from ebrank.evidence import Examination, Sums
from ebrank.kernels.compiled import FirstClass
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.engine import run_trial
from ebrank.simulation.result import TrialResult
from ebrank.simulation.users import BROWSE, PositionBased, UserModel
from tests.simulation.tiny import tiny, variants, watched

Floats = npt.NDArray[np.float64]

LIMIT = 4.5
TRIALS = 3
SIZES = [7 + i % 9 for i in range(60)]
JITTER = np.random.default_rng(8).permutation(sum(SIZES)).astype(np.float32)
DATA = tiny(8, SIZES, baseline=tiny(8, SIZES).baseline + JITTER / 10_000)  # no ties
CURVE = Examination(cutoff=5)
P = CURVE(np.arange(1, 6))
CONFIG = SimulationConfig(updates=4, sessions=3000)
FIXED_LISTS = replace(CONFIG, initial_candidates=(20, 20), sessions=12_000)
SETTINGS = [text for text in variants() if ":" not in text or "=concate" in text]

every_setting = pytest.mark.parametrize("text", SETTINGS)


R = relevance_probability(DATA.labels.astype(np.float64), DATA.max_label)


@lru_cache
def outcome(
    text: str, config: SimulationConfig = CONFIG, trial: int = 0
) -> tuple[TrialResult, Sums]:
    ranker, watch = watched(text)
    result = run_trial(DATA, ranker, config, seed=5, trial=trial)
    assert watch.trial is not None
    return result, watch.trial.sums()


def eager_clicks(
    relevance: Sequence[float],
    stopping: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    for rank in range(length):
        outcomes[rank] = minds[rank] < 1.1 * examination[rank] * relevance[rank]


EAGER_CLICKS = FirstClass(eager_clicks, BROWSE)


@dataclass(frozen=True)
class Eager:
    """Users who click a tenth more often than they should."""

    examination: Examination = field(default_factory=lambda: CURVE)

    browse = EAGER_CLICKS


WRONG_USERS: list[UserModel] = [Eager(), PositionBased(Examination(severity=0.8, cutoff=5))]
wrong_users = pytest.mark.parametrize("users", WRONG_USERS, ids=["eager", "another curve"])


def mean_z(deviations: Floats) -> float:
    return float(deviations.mean() / (deviations.std(ddof=1) / np.sqrt(len(deviations))))


# --- lists fixed in advance ----------------------------------------------------------------------


def fixed_ranks() -> npt.NDArray[np.int64]:
    """Rank of each item in the list that BM25 always shows, from 0; those from 5 are not seen."""
    ranks = np.empty(DATA.n_rows, np.int64)
    for q in range(DATA.n_queries):
        rows = DATA.rows_of(q)
        ranks[rows] = np.argsort(np.argsort(-DATA.baseline[rows]))
    return ranks


def z_by_rank(stats: Sums) -> list[float]:
    """Deviation of the clicks at each rank from n·p_k·R, in standard errors."""
    ranks, found = fixed_ranks(), []
    for rank, p in enumerate(P):
        at = ranks == rank
        expected, n = p * R[at], stats.shown[at]
        deviation = (stats.clicks[at] - n * expected).sum()
        found.append(float(deviation / np.sqrt((n * expected * (1 - expected)).sum())))
    return found


def test_click_rate_by_rank_is_examination_times_relevance() -> None:
    _, stats = outcome("bm25", FIXED_LISTS)
    assert np.max(np.abs(z_by_rank(stats))) < LIMIT
    unseen = fixed_ranks() >= 5
    assert unseen.sum() > 300
    assert stats.shown[unseen].sum() == stats.clicks[unseen].sum() == 0


@wrong_users
def test_the_check_of_click_rates_notices(users: UserModel) -> None:
    _, stats = outcome("bm25", replace(FIXED_LISTS, users=users, believed=CURVE))
    assert np.max(np.abs(z_by_rank(stats))) > LIMIT


def test_weighted_click_rate_is_unbiased_for_lists_fixed_in_advance() -> None:
    _, stats = outcome("bm25", FIXED_LISTS)
    seen = stats.shown > 0
    assert abs(mean_z(stats.weighted_clicks[seen] / stats.shown[seen] - R[seen])) < LIMIT


def martingale_z(text: str, config: SimulationConfig = CONFIG) -> tuple[float, float]:
    """Return the z of Σ (C − n·R) and of Σ (c − E·R).

    Given the past, each impression adds a number of mean zero to either sum, however the list was
    made. So the sums of different queries and trials are uncorrelated, and the square of the total
    is expected to be the sum of their squares.
    """
    sums = []
    for trial in range(TRIALS):
        _, stats = outcome(text, config, trial)
        excess = stats.weighted_clicks - stats.shown * R, stats.clicks - stats.exposure * R
        sums.append([np.add.reduceat(x, DATA.query_pointers[:-1]) for x in excess])
    by_query: Floats = np.concatenate(sums, axis=1)
    z = by_query.sum(axis=1) / np.sqrt((by_query**2).sum(axis=1))
    return float(z[0]), float(z[1])


@pytest.mark.slow
@every_setting
def test_clicks_beyond_expectation_add_up_to_nothing(text: str) -> None:
    assert np.max(np.abs(martingale_z(text))) < LIMIT


@wrong_users
@pytest.mark.parametrize("text", ["ebrank", "random", "cftopk"])
def test_the_martingale_check_notices(text: str, users: UserModel) -> None:
    z = martingale_z(text, replace(CONFIG, users=users, believed=CURVE))
    assert np.min(np.abs(z)) > LIMIT


@pytest.mark.parametrize("text", ["ebrank", "ucbrank", "prior", "thompson"])
def test_weighted_click_rate_is_biased_under_an_adaptive_ranker(text: str) -> None:
    """An item with bad luck is shown no more and keeps its bad name: C/n falls short of R."""
    shortfall = []
    for trial in range(TRIALS):
        _, stats = outcome(text, CONFIG, trial)
        seen = stats.shown > 0
        shortfall.append(stats.weighted_clicks[seen] / stats.shown[seen] - R[seen])
    assert mean_z(np.concatenate(shortfall)) < -LIMIT


# --- ceiling and floor ---------------------------------------------------------------------------


@every_setting
def test_no_list_is_better_than_the_oracles(text: str) -> None:
    """Items enter alike for all rankers, so this holds session by session."""
    best, other = outcome("oracle")[0], outcome(text)[0]
    assert best.test_queries.tolist() == other.test_queries.tolist()
    for name in ("test_ndcg", "cum_ndcg", "run_ndcg", "cold_ndcg", "warm_ndcg", "warm_by_query"):
        assert np.all(getattr(best, name) >= getattr(other, name) - 1e-12), name


def random_ndcg(q: int, length: int) -> float:
    """Expected NDCG of a random order: mean relevance at every rank, over the ideal DCG."""
    relevance = np.sort(R[DATA.rows_of(q)])[::-1]
    discounts = 1.0 / np.log2(np.arange(2, length + 2))
    return float(relevance.mean() * discounts.sum() / (relevance[:length] @ discounts))


@pytest.mark.parametrize("text", ["random", "cfrandomk", "cfrandomk:features=concate"])
def test_random_lists_are_as_good_as_chance(text: str) -> None:
    served = outcome(text, FIXED_LISTS)[0]
    expected = np.array([random_ndcg(q, 5) for q in range(DATA.n_queries)])
    assert abs(mean_z(served.test_ndcg - expected[served.test_queries])) < LIMIT
