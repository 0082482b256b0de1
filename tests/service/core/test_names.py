from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.environment.config import SettingsError
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.core.queries import normalized
from ebrank.service.engine import Engine
from tests.service.scenes import Opened, items, played, ranked, settings


@given(st.text())
def test_normalized_names_stay_as_they_are(name: str) -> None:
    assert normalized(normalized(name)) == normalized(name)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("tea", "tea"),
        (" Green\tTEA\n", "green tea"),
        ("Ⅷ ½", "viii 1⁄2"),
        ("e\u0301tude", "étude"),
        ("STRASSE", "strasse"),
        ("straße", "strasse"),
        ("ｔｅａ　ｂａｇ", "tea bag"),
        ("\ud800", "\ud800"),  # half a character
    ],
)
def test_spellings_of_a_name(spelled: str, name: str) -> None:
    assert normalized(spelled) == name


@played()
async def test_spellings_are_one_query(engine: Engine) -> None:
    await engine.put_items("Green  Tea", items(2))
    await engine.put_items(" green tea", items(3))
    answer = await ranked(engine, "GREEN TEA", items=["i0", "i2"])
    assert len(answer.items) == 2
    view = await engine.query("Green tea ")
    assert (view.query, len(view.items)) == ("green tea", 3)
    assert (await engine.withdraw("GREEN tea", "i1")).withdrawn
    assert (await engine.insights()).totals.queries == 1
    for nameless in (" ", "\u3000"):
        with pytest.raises(Problem, match="contains only spaces"):
            await ranked(engine, nameless)
    with pytest.raises(Problem, match="more than 512 characters"):
        await engine.query("ﷺ" * 100)


@played(settings(store={"normalize_queries": False}))
async def test_names_may_be_literal_if_a_store_began_so(engine: Engine, opened: Opened) -> None:
    await engine.put_items("Tea ", items(1))
    with pytest.raises(NotFound):
        await engine.query("tea")
    with pytest.raises(SettingsError, match=r"are literal\. Set it to false, or use another"):
        await opened(settings())
