"""What the service is for: under its default settings a good new item is found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ebrank import Examination
from ebrank.service.api import EventIn, ItemIn
from ebrank.service.engine import Engine
from ebrank.service.settings import Settings
from tests.service.scenes import ids, items, play, ranked, settings

INCUMBENTS = 15
RELEVANCE = 0.3  # theirs
GOOD = 0.8  # the newcomer's
BEFORE = 300  # lists before it enters: the others are well known
LISTS = 100  # after it


class Users:
    """Users who click what they examine and find relevant."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._examination = Examination()(range(1, 11)).tolist()
        self._count = 0

    async def search(self, engine: Engine) -> list[str]:
        """Let one user search and click; return what was shown."""
        self._count += 1
        answer = await ranked(engine)
        events = [
            EventIn(f"{self._count} {item}", answer.ranking_id, item, "click")
            for item, p in zip(ids(answer), self._examination, strict=True)
            if self._rng.random() < p * (GOOD if item == "new" else RELEVANCE)
        ]
        await engine.feedback(events)
        return ids(answer)


def lists_until_shown(chosen: Settings, seed: int) -> float:
    """Return after how many lists a good item that enters late is shown, infinity if never."""

    async def scene(engine: Engine) -> float:
        users = Users(seed)
        await engine.put_items("q", items(INCUMBENTS))
        for _ in range(BEFORE):
            await users.search(engine)
        await engine.put_items("q", [ItemIn("new", [0.0, 0.0])])
        for number in range(1, LISTS + 1):
            if "new" in await users.search(engine):
                return number
        return math.inf

    return play(scene, chosen)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_good_new_item_is_found_under_default_settings(seed: int) -> None:
    assert lists_until_shown(Settings(), seed) <= 5
    assert lists_until_shown(settings(ranking={"policy": "ebrank:epsilon=1"}), seed) == math.inf
