from __future__ import annotations

import numpy as np
import pytest

from ebrank import Examination, ParameterError
from ebrank.evidence import Behaviors, Valuation
from ebrank.evidence.slots import SLOTS, ranks_of
from ebrank.evidence.valuation import UNIT

SHOP = Behaviors.of({"click": 0.25, "purchase": 1.0})


def parts(valuation: Valuation) -> tuple[list[float], ...]:
    """Return seen, p, and for each behavior w, then for each behavior w/p."""
    table = valuation.table.reshape(-1, valuation.slots).astype(float)
    table[1:] *= UNIT
    return tuple(row.tolist() for row in table)


def test_the_table_holds_seen_p_w_and_w_over_p() -> None:
    curve = Examination(curve=(1.0, 0.5, 0.25, 0.0))
    seen, p, click, purchase, click_over_p, purchase_over_p = parts(
        Valuation.of(curve, SHOP, slots=4)
    )
    assert seen == [1, 1, 1, 0]
    assert p == [1, 0.5, 0.25, 0]
    assert click == [0.25, 0.25, 0.25, 0]
    assert purchase == [1, 1, 1, 0]
    assert click_over_p == [0.25, 0.5, 1, 0]
    assert purchase_over_p == [1, 2, 4, 0]


def test_a_band_has_the_mean_p_of_its_examined_ranks() -> None:
    valuation = Valuation.of(Examination(), slots=SLOTS)
    for slot in range(SLOTS):
        mean = np.mean([1 / np.log2(rank + 1) for rank in ranks_of(slot)])
        assert valuation.exposure[slot] * UNIT == pytest.approx(mean, abs=1e-9)
    cut = Valuation.of(Examination(cutoff=13), slots=SLOTS).exposure * UNIT
    assert cut[10] == pytest.approx(np.mean([1 / np.log2(rank + 1) for rank in (11, 12, 13)]))
    assert not cut[11:].any()


def test_it_is_made_once_and_cannot_be_changed() -> None:
    valuation = Valuation.of(Examination(cutoff=7), slots=5)
    assert Valuation.of(Examination(cutoff=7), slots=5) is valuation
    with pytest.raises(ValueError, match="read-only"):
        valuation.table[0] = 2


@pytest.mark.parametrize(
    ("curve", "where"),
    [
        (Examination(curve=(1.0, 1e-5)), "rank 2"),
        (Examination(severity=5.0), "ranks 101 to 300"),
    ],
)
def test_a_rank_that_users_hardly_examine_is_refused(curve: Examination, where: str) -> None:
    with pytest.raises(ParameterError, match=f"{where} with probability .* too rarely"):
        Valuation.of(curve, slots=SLOTS)
