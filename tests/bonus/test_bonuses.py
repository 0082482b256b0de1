"""Every built-in bonus, by its own definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.bonus import Bonus
from ebrank.bonus.draw import Draw
from ebrank.bonus.marginal_certainty import MarginalCertainty
from ebrank.bonus.none import NoBonus
from ebrank.parameters import declared
from ebrank.policy import Choices, find

positive = st.floats(0.01, 100)


@given(st.floats(0, 2), st.floats(0, 100), positive, positive, st.floats(0, 100))
def test_marginal_certainty_is_the_papers(
    relevance: float, exposure: float, alpha: float, beta: float, epsilon: float
) -> None:
    value = MarginalCertainty.value(relevance, exposure, alpha, beta, epsilon)
    assert value == pytest.approx(epsilon * relevance / (exposure + alpha + beta) ** 2)
    assert MarginalCertainty.value(relevance, exposure, alpha, beta, 0.0) == 0.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_draw_takes_the_place_of_the_mean(relevance: float, draw: float) -> None:
    assert relevance + Draw.value(relevance, draw) == pytest.approx(draw)
    assert Draw.noisy


def test_no_bonus_is_nothing() -> None:
    assert NoBonus.value() == 0.0


def test_each_choice_is_the_file_of_its_name() -> None:
    choices = next(p.choices for p in declared(Choices) if p.name == "bonus")
    for name in choices:
        bonus = find(Bonus, "ebrank.bonus", name)
        assert bonus.name == name
        assert bonus.help.endswith(".")
