"""Forecasts: right in a known world, the same for a seed, honest about what a log leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from selenium.webdriver import Chrome

from ebrank.addons.whatif import Forecast, History, whatif
from ebrank.addons.whatif.belief import Belief, Draw
from ebrank.addons.whatif.forecast import interval
from ebrank.addons.whatif.replay import THERE, Plan, Replay
from ebrank.errors import DataError, ParameterError
from ebrank.evidence import Behaviors, BehaviorStats, Examination
from ebrank.kernels import streams
from ebrank.lab.rankers import registry
from ebrank.paper.report.whatif import table, write
from ebrank.typing import Floats
from tests.browser import violations
from tests.service.dashboard.page import Page

QUERIES, ITEMS, LENGTH = 30, 8, 3
CURVE = (1.0, 0.6, 0.3)
ROWS = QUERIES * ITEMS


def truth(seed: int = 3) -> tuple[Floats, Floats]:
    """Return features and the relevance that they explain in part."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(ROWS, 2))
    logits = 3.0 * x[:, 0] - 3.0 + 0.5 * rng.standard_normal(ROWS)
    return x, 1.0 / (1.0 + np.exp(-logits))


def logged(lists: int = 300, seed: int = 3, curve: tuple[float, ...] = CURVE) -> History:
    """Return the log of random lists of a known world."""
    x, relevance = truth(seed)
    rng = np.random.default_rng(seed + 1)
    stats = BehaviorStats.zeros(ROWS, slots=len(curve))
    for query in range(QUERIES):
        for _ in range(lists):
            ranking = query * ITEMS + rng.permutation(ITEMS)[: len(curve)]
            stats.record(ranking, rng.uniform(size=len(curve)) < relevance[ranking] * curve)
    pointers = np.arange(QUERIES + 1) * ITEMS
    return History("log", pointers, x.astype(np.float32), stats)


@pytest.fixture(scope="module")
def log() -> History:
    return logged()


def best(relevance: Floats) -> float:
    """Return what the best list earns, the mean over queries."""
    ordered = -np.sort(-relevance.reshape(QUERIES, ITEMS), axis=1)[:, :LENGTH]
    return float((ordered @ CURVE).mean())


def test_the_forecast_is_right_where_the_log_tells_everything(log: History) -> None:
    _, relevance = truth()
    made = whatif(log, ("oracle", "today"), worlds=10, lists=3000, periods=2)
    assert made.per_list[:, 0].mean() == pytest.approx(best(relevance), rel=0.03)
    order = np.argsort(-log.production.reshape(QUERIES, ITEMS), axis=1)[:, :LENGTH]
    shown = np.take_along_axis(relevance.reshape(QUERIES, ITEMS), order, axis=1)
    assert made.per_list[:, 1].mean() == pytest.approx(float((shown @ CURVE).mean()), rel=0.03)
    assert made.policies[made.best] == "oracle"


def test_worlds_agree_with_the_log_and_with_each_other_as_far_as_it_tells(log: History) -> None:
    _, relevance = truth()
    belief = Belief.of(log)
    assert belief.assumed(LENGTH) == []
    draws = [belief.draw(streams.trial_key(5, world), log) for world in range(12)]
    curves = np.array([draw.examination(np.arange(1, 4)) for draw in draws])
    error = belief.state["examination_error"]
    assert np.abs(curves.mean(axis=0) - CURVE).max() < 0.05
    assert (curves.std(axis=0)[1:] > 0.4 * error[1:]).all()  # the curve itself is drawn
    assert (curves.std(axis=0)[1:] < 3.0 * error[1:]).all()
    drawn = np.array([draw.relevance for draw in draws])
    z = (drawn.mean(axis=0) - relevance) / drawn.std(axis=0)
    assert 0.7 < z.std() < 1.5
    with_few = Belief.of(logged(lists=15))
    wide = np.array([with_few.draw(streams.trial_key(5, w), log).relevance for w in range(4)])
    assert wide.std(axis=0).mean() > 0.5 * drawn.std(axis=0).mean()


def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(log: History) -> None:
    timed = replace(log, arrived=np.tile(np.linspace(0.0, 0.9, ITEMS), QUERIES))

    def made(seed: int, threads: int) -> Forecast:
        policies = ("auto", "thompson")
        return whatif(timed, policies, worlds=2, lists=3000, periods=3, seed=seed, threads=threads)

    one, two, other = made(1, 1), made(1, 2), made(2, 1)
    for name in ("value", "new", "found", "wait"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
    assert not np.array_equal(one.value, other.value)
    assert (one.new > 0.0).all()  # new items arrive, and earn something


def test_intervals_hold_another_draw_nine_times_out_of_ten() -> None:
    rng = np.random.default_rng(8)
    for worlds in (19, 32):
        inside = []
        for _ in range(4000):
            *others, own = rng.standard_normal(worlds + 1)
            _, low, high = interval(np.array(others))
            inside.append(low <= own <= high)
        assert np.mean(inside) == pytest.approx(0.9, abs=0.015)
    assert interval(np.array([1.0, 2.0, np.inf])).high == np.inf


def test_cost_and_payback_are_read_off_the_gain() -> None:
    value = np.array([[[1.0, 1.0, 1.0, 1.0], [0.5, 0.9, 1.6, 1.2], [0.5, 1.0, 1.0, 1.0]]])
    nothing = np.zeros((1, 3))
    made = Forecast(
        ("today", "a", "b"), 0, "today", 400, 3, None, 0, "clicks", value, nothing, nothing, nothing
    )
    assert made.cost[0].tolist() == pytest.approx([0.0, 60.0, 50.0])
    assert made.paid_back[0].tolist() == [0.0, 300.0, np.inf]
    assert made.policies[made.best] == "a"


def test_the_future_brings_what_the_past_has_brought(log: History) -> None:
    timed = replace(log, arrived=np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.5, 0.75], QUERIES))
    whole = int(timed.lists.sum())
    plan = Plan.of(timed, "today", whole, LENGTH)
    assert np.unique(plan.due).tolist() == [THERE, whole // 4, whole // 2, 3 * whole // 4]
    assert np.diff(plan.history.pointers).tolist() == [ITEMS + 3] * QUERIES
    assert not plan.history.stats.counts[plan.due >= 0].any()
    assert (Plan.of(timed, "today", 2 * whole, LENGTH).due >= 0).sum() == 6 * QUERIES
    start = Plan.of(timed, "start", whole, LENGTH)
    assert (start.due >= 0).sum() == 3 * QUERIES
    half = plan.part(np.arange(QUERIES // 2))
    assert half.lists == whole // 2
    assert half.due.max() == 3 * whole // 8


def test_users_do_several_things_in_the_shares_of_the_log() -> None:
    behaviors = Behaviors.parse(["click=0.25", "purchase"])
    counts = np.zeros((4, 3, 2), np.int32)
    counts[:, 0], counts[:, 1], counts[:, 2] = 1000, 300, 100
    stats = BehaviorStats(counts, behaviors)
    history = History("log", np.array([0, 4]), np.zeros((4, 1), np.float32), stats)
    worth = np.full(4, 0.35)
    draw = Draw(worth, Examination(curve=(1.0, 0.5)), np.ones(1))
    plan = Plan(history, np.full(4, THERE), "start", 20_000, 2)
    run = Replay(plan, draw, streams.trial_key(1, 0), 1)
    assert run.run(registry.parse("random")).value[0] == pytest.approx(0.35 * 1.5)
    done = run.world.counts.sum(axis=0)
    assert done[2].sum() / done[1:].sum() == pytest.approx(0.25, abs=0.02)
    earned = (done[1:] * np.array(behaviors.weights)[:, None]).sum() / 20_000
    assert earned == pytest.approx(0.35 * 1.5, rel=0.03)


def test_what_a_log_cannot_tell_is_said() -> None:
    one_rank = logged(lists=30, curve=(1.0,))
    made = whatif(one_rank, ("today",), worlds=2, lists=100, periods=2, length=2)
    assert any("no times" in note for note in made.notes)
    assert any("rank 2: the configured curve applies" in note for note in made.notes)
    two = np.zeros((ROWS, 2, 2), np.int32)
    two[::2, :, :1], two[1::2, :, 1:] = one_rank.stats.counts[::2], one_rank.stats.counts[1::2]
    apart = replace(one_rank, stats=BehaviorStats(two))  # each item at one rank only
    notes = whatif(apart, ("today",), worlds=2, lists=100, periods=2).notes
    assert any("rank 2: the configured curve applies" in note for note in notes)
    with pytest.raises(DataError, match="no impressions"):
        whatif(replace(one_rank, stats=BehaviorStats.zeros(ROWS, slots=1)), ("auto",))
    shown = one_rank.stats.counts.copy()
    shown[:, 1:] = 0
    with pytest.raises(DataError, match="nobody has clicked"):
        whatif(replace(one_rank, stats=BehaviorStats(shown)), ("auto",))
    with pytest.raises(ParameterError, match="--policy atuo: no ranker is called 'atuo'"):
        whatif(one_rank, ("today", "atuo"))
    with pytest.raises(ParameterError, match="named twice"):
        whatif(one_rank, ("auto", "auto"))


def test_large_logs_are_replayed_by_some_queries_in_each_world(log: History) -> None:
    made = whatif(log, ("oracle",), worlds=4, periods=2, most_lists=3000)
    assert made.per_list.mean() == pytest.approx(best(truth()[1]), rel=0.15)
    assert made.lists == 9_000


def test_a_page_shows_the_forecast(log: History, tmp_path: Path) -> None:
    made = whatif(log, ("today", "smoothedctr"), worlds=2, lists=400, periods=2)
    page = write(made, tmp_path / "out").read_text(encoding="utf-8")
    assert all(str(row.cells[1]) in page for row in table(made).rows)
    assert {path.suffix for path in page_files(tmp_path)} >= {".html", ".svg", ".csv"}


@pytest.fixture
def opened(browser: Chrome) -> Iterator[Page]:
    """A window that is as wide as before for the tests that follow."""
    page = Page(browser, "")
    yield page
    page.emulate()


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_fills_the_window(log: History, tmp_path: Path, opened: Page, width: int) -> None:
    made = whatif(log, ("today", "smoothedctr"), worlds=2, lists=400, periods=2)
    opened.emulate(width=width)
    opened.browser.get(write(made, tmp_path).as_uri())
    assert opened.run("return document.documentElement.scrollWidth") <= width
    main = opened.run("return document.querySelector('main').getBoundingClientRect().width")
    assert main > 0.85 * width
    assert violations(opened.browser) == []


def page_files(folder: Path) -> list[Path]:
    return list((folder / "out").iterdir())
