"""An entry's remark: the rule, and that what is written is read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank.experiments.framework.outcome import Finding, from_plain, to_plain
from ebrank.experiments.ledger.entries import LedgerEntry, LedgerSection

FIGURE = st.floats(0, 1)


@pytest.mark.parametrize(
    ("reference", "ours", "sd", "digits", "remark"),
    [
        (0.500, 0.520, 0.0101, 3, ""),  # less than two deviations
        (0.500, 0.520, 0.0099, 3, "beyond the spread; not explained"),
        (0.520, 0.500, 0.0099, 3, "beyond the spread; not explained"),
        (0.500, 0.5049, 0.0001, 3, ""),  # too small to matter
        (150.0, 150.9, 0.1, 1, ""),
        (150.0, 151.1, 0.1, 1, "beyond the spread; not explained"),
        (0.500, 0.520, None, 3, "one trial: the spread is unknown"),
        (None, 0.520, 0.001, 3, ""),
        (0.500, None, None, 3, "not run"),
    ],
)
def test_the_rule(
    reference: float | None, ours: float | None, sd: float | None, digits: int, remark: str
) -> None:
    entry = LedgerEntry("EBRank", "Warm-NDCG", reference, ours, sd, digits)
    assert entry.remarked([]).remark == remark


@given(FIGURE, FIGURE, st.floats(0, 0.1))
def test_a_remark_names_what_is_known_or_says_that_nothing_is(
    reference: float, ours: float, sd: float
) -> None:
    entry = LedgerEntry("PRIOR", "Cold-NDCG", reference, ours, sd)
    far = abs(ours - reference) > 2 * sd and abs(ours - reference) >= 0.005
    assert bool(entry.remarked([]).remark) == far
    remark = entry.remarked(["this", "that"]).remark
    assert remark == ("beyond the spread; this; that" if far else "")


def test_the_difference_is_ours_less_theirs() -> None:
    assert LedgerEntry("a", "b", 0.25, 0.75).difference == 0.5
    assert LedgerEntry("a", "b", None, 0.75).difference is None
    assert LedgerEntry("a", "b", 0.25, None).difference is None


def test_entries_are_read_back_as_written() -> None:
    entry = LedgerEntry("EBRank", "Warm-NDCG", 0.849, 0.852, 0.004, group="W/-Behav", remark="why")
    section = LedgerSection(
        "Table 2", "a note", (entry,), (Finding("x", "it holds", "confirmed", "by 3"),)
    )
    assert from_plain(LedgerSection, json.loads(json.dumps(to_plain(section)))) == section
