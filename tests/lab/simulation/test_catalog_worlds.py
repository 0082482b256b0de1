"""Worlds where queries share the items of a catalog: arrivals, Zipf traffic, shares of clicks."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import scipy

from ebrank.errors import ParameterError
from ebrank.kernels import streams
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import fixed_model
from ebrank.lab.simulation import play
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.play import everyone, phase, zipf
from ebrank.lab.simulation.result import SHARES, Result, measured
from ebrank.lab.simulation.users import habits_of, parse
from ebrank.lab.simulation.world import FROM_THE_START, item_times, new_world
from ebrank.typing import Floats
from tests.lab.simulation.tiny import tiny

RARE = 1e-6
SESSIONS, LENGTH = 400, 3


def shop(sizes: tuple[int, ...] = (6, 7, 8, 6, 9, 7), catalog: int = 14) -> Dataset:
    """Return a tiny dataset of items that queries share, with R of its own and no ties."""
    rng = np.random.default_rng(4)
    rows = sum(sizes)
    items = np.concatenate([rng.permutation(catalog)[:size] for size in sizes])
    return tiny(
        sizes=sizes,
        max_label=rows - 1,
        labels=rng.permutation(rows).astype(np.int8),
        items=items,
        relevance=np.linspace(0.05, 0.9, rows),
        baseline=rng.permutation(rows).astype(np.float32),
    )


def config(**changes: object) -> SimulationConfig:
    usual = {"sessions": SESSIONS, "list_length": LENGTH, "traffic": "zipf", "updates": 4}
    return SimulationConfig(**(usual | changes))  # type: ignore[arg-type]


# --- arrivals ------------------------------------------------------------------------------------


def test_half_of_the_items_are_there_and_the_others_arrive_at_a_uniform_time() -> None:
    n = 8000
    data = tiny(sizes=(n, 6), items=np.append(np.arange(n), np.arange(6)))
    times = item_times(data, streams.trial_key(3, 0), 1000)[:n]
    late = times[times != FROM_THE_START]
    assert scipy.stats.binomtest(len(late), n).pvalue > RARE
    assert (late.min(), late.max()) == (0, 999)
    assert scipy.stats.chisquare(np.bincount(late // 100)).pvalue > RARE
    other = item_times(data, streams.trial_key(3, 1), 1000)[:n]
    assert not np.array_equal(times, other)


def test_an_item_arrives_in_all_its_queries_at_once_and_no_query_begins_empty() -> None:
    for trial in range(40):
        data = shop(sizes=(2, 3, 2, 4), catalog=6)
        key = streams.trial_key(1, trial)
        times = item_times(data, key, 100)
        assert data.items is not None
        for item in np.unique(data.items):
            assert len(set(times[data.items == item].tolist())) == 1
        world = new_world(data, config(sessions=100), key)
        assert world.entered.min() >= 1
        assert world.entered.tolist() == [
            int((times[data.rows_of(q)] == FROM_THE_START).sum()) for q in range(4)
        ]


def test_items_enter_before_the_first_session_of_a_query_from_their_time_on() -> None:
    data, key, settings = shop(), streams.trial_key(2, 0), config()
    world = new_world(data, settings, key)
    times = item_times(data, key, SESSIONS)
    browse = settings.users.browse.compiled
    model = fixed_model(data.baseline.astype(np.float64))
    warm_up = everyone(3, data.n_queries)
    play.play(world, model, warm_up, browse, 0.0, key, 1, begin=-len(warm_up.times))
    assert np.all(world.entered_at == -1), "nothing enters before the run"
    asked = []
    for first, stop in ((0, 150), (150, SESSIONS)):
        queries, plan = phase(key, first, stop, data.n_queries)
        play.play(world, model, plan, browse, 1.0, key, 1, begin=first)
        asked.append(queries)
    for row, (query, time) in enumerate(zip(data.query_of_rows, times, strict=True)):
        own = np.flatnonzero(np.concatenate(asked) == query)
        since = own[own >= time]
        expected = -1
        if time != FROM_THE_START and len(since):
            expected = 3 + int((own < time).sum())
        assert world.entered_at[row] == expected


# --- traffic -------------------------------------------------------------------------------------


def test_queries_are_asked_by_one_over_their_rank() -> None:
    key, n = streams.trial_key(7, 0), 30
    popularity = zipf(key, n)
    asked, plan = phase(key, 0, 200_000, n, popularity)
    assert sorted(popularity.order.tolist()) == list(range(n))
    assert popularity.order.tolist() != list(range(n))
    weights = 1 / np.arange(1, n + 1)
    expected = 200_000 * weights / weights.sum()
    counts = np.bincount(asked, minlength=n)[popularity.order]
    assert scipy.stats.chisquare(counts, expected).pvalue > RARE
    assert np.diff(plan.starts).tolist() == np.bincount(asked, minlength=n).tolist()


def test_a_session_asks_the_same_query_however_the_run_is_divided() -> None:
    key = streams.trial_key(7, 0)
    popularity = zipf(key, 9)
    whole, _ = phase(key, 0, 100, 9, popularity)
    parts = [phase(key, first, first + 25, 9, popularity)[0] for first in (0, 25, 50, 75)]
    assert np.array_equal(whole, np.concatenate(parts))


def test_every_query_is_the_most_popular_in_some_trial() -> None:
    first = [int(zipf(streams.trial_key(1, t), 4).order[0]) for t in range(4000)]
    assert scipy.stats.chisquare(np.bincount(first, minlength=4)).pvalue > RARE


# --- shares --------------------------------------------------------------------------------------


def by_hand(data: Dataset, key: np.uint64, rare: int, head: int, first: int) -> list[float]:
    """Return the shares of lists sorted by the baseline: every list, and every other possible."""
    times = item_times(data, key, SESSIONS)
    popularity = zipf(np.uint64(streams.child(key, streams.POPULARITY)), data.n_queries)
    asked, _ = phase(
        np.uint64(streams.child(key, streams.QUERIES)), 0, SESSIONS, data.n_queries, popularity
    )
    assert data.relevance is not None
    relevance = data.relevance[data.labels]
    curve = [1 / np.log2(rank + 1) for rank in (1, 2, 3)]
    lists = np.bincount(asked, minlength=data.n_queries)
    seen = [0] * data.n_queries
    got = dict.fromkeys(SHARES, 0.0)
    best = dict.fromkeys(SHARES, 0.0)

    def value(rows: tuple[int, ...], *, late: bool = False) -> float:
        worth = zip(rows, curve, strict=False)
        return float(sum(relevance[row] * p for row, p in worth if not late or times[row] >= 0))

    for time, query in enumerate(asked.tolist()):
        rows = [row for row in range(data.n_rows)[data.rows_of(query)] if times[row] <= time]
        shown = tuple(sorted(rows, key=lambda row: -data.baseline[row])[:LENGTH])
        ideal = max(permutations(rows, min(LENGTH, len(rows))), key=value)
        names = ["all"]
        names += ["rare"] * bool(lists[query] < rare) + ["head"] * bool(lists[query] > head)
        names += ["first"] * (seen[query] < first)
        for name in names:
            got[name] += value(shown)
            best[name] += value(ideal)
        got["late"] += value(shown, late=True)
        best["late"] += value(ideal, late=True)
        seen[query] += 1
    return [got[name] / best[name] for name in SHARES]


def test_shares_are_those_of_a_calculation_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RARE", 45), ("HEAD", 80), ("FIRST", 7)):
        monkeypatch.setattr(f"ebrank.lab.simulation.records.{name}", value)
    data = shop()
    for trial in range(3):
        key = streams.trial_key(5, trial)
        result = run_trial(data, registry.parse("bm25"), config(), 5, trial, threads=1)
        assert result.shares is not None
        assert result.shares.tolist() == pytest.approx(by_hand(data, key, 45, 80, 7))


def test_perfect_lists_have_all_and_sets_without_items_have_none() -> None:
    oracle = registry.parse("oracle")
    result = run_trial(shop(), oracle, config(), 1, 0, threads=1)
    assert result.shares is not None
    assert result.shares[[0, 1, 3, 4]].tolist() == pytest.approx([1.0] * 4)
    plain = run_trial(tiny(), oracle, SimulationConfig(updates=2), 1, 0, threads=1)
    assert plain.shares is None
    told = measured(Result("shop", "oracle", {}, 1, (result, result)))
    assert told["shares"]["all"] == pytest.approx([1.0, 1.0])
    assert set(told["shares"]) == set(SHARES)
    assert "shares" not in measured(Result("tiny", "oracle", {}, 1, (plain,)))


@pytest.mark.parametrize(
    "text", ["auto", "thompson", "pdgd:features=concate", "mgd:features=none", "toprank"]
)
def test_all_kinds_of_sessions_take_a_catalog(text: str) -> None:
    """Several items may enter at once; the same run on more threads has the same shares."""
    ranker = registry.parse(text)
    once = run_trial(shop(), ranker, config(), 2, 0, threads=1)
    again = run_trial(shop(), ranker, config(), 2, 0, threads=2)
    assert once.shares is not None
    assert np.array_equal(once.shares, again.shares, equal_nan=True)  # type: ignore[arg-type]
    assert 0.3 < once.shares[0] <= 1.0


# --- relevance of its own ------------------------------------------------------------------------


def probabilities(text: str) -> tuple[Floats, Floats]:
    return habits_of(parse(text), 2, np.array([0.0, 0.3, 0.5]))


def test_users_click_by_the_relevance_of_the_dataset() -> None:
    click, stop = probabilities("pbm")
    assert click.tolist() == [0.0, 0.3, 0.5]
    click, stop = probabilities("dcm")
    assert click.tolist() == stop.tolist() == [0.0, 0.3, 0.5]
    assert probabilities("cascade:stop=0.2")[1].tolist() == [0.2] * 3
    assert probabilities("pbm:setting=perfect")[0].tolist() == [0.0, 0.5, 1.0], (
        "as the setting says"
    )


def test_what_would_contradict_it_is_refused() -> None:
    with pytest.raises(ParameterError, match="noise has no effect"):
        probabilities("pbm:noise=0.3")
    with pytest.raises(ParameterError, match="labels must be graded on tiny"):
        config(labels="binary").judged(shop())
