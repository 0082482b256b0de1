"""The service serves every policy that the library ranks by: same order, same scores, to the bit.

`tests/lab/rankers/test_ebrank.py` compares the library with the lab in the same way.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ebrank import EBRanker, Examination
from ebrank.evidence import BehaviorStats
from ebrank.model.policy.scaling import Scaling
from ebrank.service.api import ItemIn, RankedItem
from ebrank.service.serving.stages import Score
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore
from ebrank.typing import Features
from tests.service.scenes import Scene, add_model, ids, play, played, settings
from tests.service.store.blocking import run

ITEMS = 8
DRAWS = 7
POLICIES = [  # every evidence and every choice; the conformance of policies tries all pairs
    "ebrank:estimator=ips,bonus=marginal_certainty",
    "ebrank:estimator=exposure,bonus=none",
    "ebrank:estimator=exact,bonus=draw",
    "ebrank:estimator=exposure,part=prior",
    "ebrank:estimator=ips,part=behavior",
    "thompson",
]
LISTS = st.lists(st.lists(st.booleans(), min_size=ITEMS, max_size=ITEMS), max_size=6)


class Outcome(NamedTuple):
    """The list that was served last, what was known then, and what broke its ties."""

    items: list[RankedItem]
    stats: BehaviorStats
    tie_keys: npt.NDArray[np.uint32]


def features() -> Features:
    return np.random.default_rng(3).random((ITEMS, 2)).astype(np.float32)


def ranker(text: str) -> EBRanker:
    return EBRanker(text, examination=Examination(cutoff=6), scaling=Scaling("query"), threads=1)


@cache
def fitted(text: str) -> EBRanker:
    """Return a ranker whose prior has learned that the first feature is liked."""
    rng = np.random.default_rng(5)
    rows = rng.random((200, 2)).astype(np.float32)
    shown = np.full(200, 30)
    return ranker(text).fit(rows, BehaviorStats.of(shown, rng.binomial(shown, rows[:, 0] / 2)))


def chosen(text: str) -> Settings:
    return settings(ranking={"policy": text, "k": ITEMS, "window": 0.0}, examination={"cutoff": 6})


async def filled(engine: Scene) -> None:
    rows = features().tolist()
    await engine.put_items("q", [ItemIn(f"i{n}", row) for n, row in enumerate(rows)])


def served(text: str, lists: list[list[bool]], prior: EBRanker | None) -> Outcome:
    """Serve some lists to users who click by plan, and then one more."""
    store = MemoryStore()
    if prior is not None:
        run(add_model(store, prior, features=()))

    async def scene(engine: Scene) -> Outcome:
        await filled(engine)
        for clicks in lists:
            answer = await engine.ranked()
            if any(clicks):
                await engine.clicked(answer, *itertools.compress(ids(answer), clicks))
        stats, live = BehaviorStats((await engine.stored()).counts), await engine.live()
        [score] = (stage for stage in engine.stages.in_order if isinstance(stage, Score))
        score._draws = np.random.PCG64(DRAWS)
        last = await engine.ranked(explain=True)
        await engine.query("q")  # whatever else is told about the policy's items
        await engine.insights()
        assert last.model == (0 if prior is None else 1)
        return Outcome(last.items, stats, live.tie_keys)

    return play(scene, chosen(text), store=store)


def check(text: str, lists: list[list[bool]], prior: EBRanker | None) -> None:
    """Compare the last list served with the library's."""
    items, stats, tie_keys = served(text, lists, prior)
    library = prior or ranker(text)
    draws = np.random.PCG64(DRAWS).random_raw(ITEMS)
    expected = library.ranked(library.prior(features()), stats, tie_keys, draws)
    order, known = expected.order.tolist(), expected.candidates
    assert [item.id for item in items] == [f"i{row}" for row in order]
    assert [item.score for item in items] == known.scores[order].tolist()
    for name, column in (
        ("relevance", known.relevance),
        ("bonus", known.bonus),
        ("prior", known.prior_mean),
        ("shown", known.sums.shown),
        ("clicks", known.sums.clicks),
        ("exposure", known.sums.exposure),
    ):
        assert [getattr(item, name) for item in items] == column[order].tolist(), name
    assert [item.interval for item in items] == [tuple(ends) for ends in expected.interval.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("text", POLICIES)
@hypothesis_settings(max_examples=5)
@given(LISTS)
def test_the_service_ranks_as_the_library_does(
    text: str, learned: bool, lists: list[list[bool]]
) -> None:
    check(text, lists, fitted(text) if learned else None)


@pytest.mark.parametrize("text", POLICIES)
def test_what_was_learned_changes_every_score_but_those_by_behavior_alone(text: str) -> None:
    """Else the comparison with a learned prior would be the one without."""
    untrained, trained = (
        {item.id: item.score for item in served(text, [], prior).items}
        for prior in (None, fitted(text))
    )
    assert (untrained == trained) == ("part=behavior" in text)


@pytest.mark.parametrize("text", ["thompson", "ebrank:bonus=draw"])
@played(chosen)
async def test_draws_are_new_for_every_list(engine: Scene, text: str) -> None:
    await filled(engine)
    first, second = [[item.score for item in (await engine.ranked()).items] for _ in range(2)]
    assert first != second
