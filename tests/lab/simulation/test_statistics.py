"""Do the simulated clicks have the probabilities they should, whichever ranker made the lists?

Draws are seeded, so a test passes always or never. A z beyond ±4.5 would befall a right simulator
with one seed in 150,000. The check is also shown to notice a wrong one: users who click what is
irrelevant more often, or who examine by another curve than rankers believe.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pytest

from ebrank.equations import relevance_probability
from ebrank.evidence import Examination, Sums
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.users import UserModel, parse
from tests.lab.simulation.tiny import tiny, variants, watched

Floats = npt.NDArray[np.float64]

LIMIT = 4.5
TRIALS = 3
DATA = tiny(8, [7 + i % 9 for i in range(60)])
CURVE = Examination(cutoff=5)
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


WRONG_USERS = (parse("pbm:noise=0.2"), parse("pbm:severity=0.8"))
wrong_users = pytest.mark.parametrize("users", WRONG_USERS, ids=str)


def mean_z(deviations: Floats) -> float:
    return float(deviations.mean() / (deviations.std(ddof=1) / np.sqrt(len(deviations))))


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
    z = martingale_z(text, replace(CONFIG, users=users, assumed=CURVE))
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
