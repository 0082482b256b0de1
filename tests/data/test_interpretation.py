"""What columns and labels mean: the caller's word, the catalog's, or an assumption that is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebrank.data.interpretation import BY_COUNT, BY_NAME, ColumnChoices, Interpretation, interpret
from ebrank.data.published import PublishedDataset, find
from ebrank.errors import ParameterError


def interpreted(
    n_features: int,
    *,
    largest_label: int = 1,
    named: PublishedDataset | None = None,
    **choices: Any,  # noqa: ANN401
) -> Interpretation:
    return interpret(
        "mine",
        n_features=n_features,
        largest_label=largest_label,
        named=named,
        choices=ColumnChoices(**choices),
    )


def columns(found: Interpretation) -> tuple[object, ...]:
    return found.baseline_feature, found.drop_features, found.max_label


MSLR_NOTE = (
    "mine has 136 features, like MSLR-WEB. So feature 110 is the baseline (BM25), features "
    "134-136, derived from clicks, are dropped, and the largest label is 4. "
    "To change this, set --baseline-feature, --drop-features, or --max-label."
)
LETOR_NOTE = (
    "mine has 46 features, like LETOR 4.0. So feature 25 is the baseline (BM25) and the "
    "largest label is 2. To change this, set --baseline-feature or --max-label."
)


@pytest.mark.parametrize(
    ("n_features", "expected", "note"),
    [(136, (110, (134, 135, 136), 4), MSLR_NOTE), (46, (25, (), 2), LETOR_NOTE)],
)
def test_recognition_by_count_is_said(
    n_features: int, expected: tuple[object, ...], note: str
) -> None:
    found = interpreted(n_features)
    assert columns(found) == expected
    assert found.recognized_by == BY_COUNT
    assert found.assumed == ("baseline_feature", "drop_features", "max_label")
    assert (found.notes, found.experiment_notes) == ((note,), [note])


@pytest.mark.parametrize(("name", "n_features"), [("MQ2008", 46), ("MSLR-WEB10K", 136)])
def test_a_catalog_name_is_enough(name: str, n_features: int) -> None:
    found = interpreted(n_features, named=find(name))
    assert columns(found) == columns(interpreted(n_features))
    assert (found.recognized_by, found.assumed, found.experiment_notes) == (BY_NAME, (), [])


def test_a_catalog_name_does_not_cover_other_features() -> None:
    assert interpreted(136, named=find("MQ2008")).recognized_by == BY_COUNT
    assert columns(interpreted(50, named=find("MQ2008"))) == (None, (), 1)


@pytest.mark.parametrize("named", [None, find("MSLR-WEB30K")])
def test_choices_come_first(named: PublishedDataset | None) -> None:
    chosen: dict[str, Any] = {"baseline_feature": 3, "drop_features": [7, 5, 7], "max_label": 9}
    assert columns(interpreted(136, named=named, **chosen)) == (3, (5, 7), 9)
    nothing = interpreted(136, named=named, baseline_feature=None, drop_features=(), max_label=9)
    assert columns(nothing) == (None, (), 9)
    assert (nothing.assumed, nothing.experiment_notes) == ((), [])
    assert nothing.recognized_by == (None if named is None else BY_NAME)


def test_a_note_is_on_what_is_left_open_only() -> None:
    found = interpreted(136, drop_features=())
    assert found.assumed == ("baseline_feature", "max_label")
    assert "dropped" not in found.notes[0]
    assert found.notes[0].endswith("set --baseline-feature or --max-label.")
    assert interpreted(46, baseline_feature=1, max_label=2).notes == ()


def test_other_features_have_no_baseline_and_the_labels_that_are_there() -> None:
    found = interpreted(9, largest_label=3)
    assert columns(found) == (None, (), 3)
    assert interpreted(9, largest_label=0).max_label == 1, "a scale has two labels at least"
    assert (found.feature_set, found.recognized_by, found.notes) == (None, None, ())
    (note,) = found.experiment_notes
    assert note.startswith("mine has no known baseline, so each trial ranks the initial log in a ")
    assert "--baseline-feature" in note
    assert interpreted(9, baseline_feature=None).experiment_notes == []


def test_the_baseline_must_be_a_feature() -> None:
    with pytest.raises(ParameterError, match=r"baseline_feature must be from 1 to 9, .* not 10"):
        interpreted(9, baseline_feature=10)


@pytest.mark.parametrize(
    ("choices", "given"),
    [
        ({}, ()),
        ({"baseline_feature": None}, (("baseline_feature", "none"),)),
        ({"drop_features": None}, (("drop_features", "none"),)),
        ({"drop_features": np.array([2, 1])}, (("drop_features", "1,2"),)),
        (
            {"drop_features": range(1, 4), "max_label": 3},
            (("drop_features", "1-3"), ("max_label", "3")),
        ),
    ],
)
def test_choices_can_be_typed_again(choices: dict[str, Any], given: object) -> None:
    assert ColumnChoices(**choices).given == given


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("baseline_feature", value) for value in (0, 1.5, "a", True)),
        *(("drop_features", value) for value in (5, "1", "none", [1.5], [0], [None])),
        *(("max_label", value) for value in (0, 31, -1, 1.5, "a", None, True)),
    ],
)
def test_wrong_choices_are_named(option: str, wrong: object) -> None:
    choices: dict[str, Any] = {option: wrong}
    with pytest.raises(ParameterError, match=f"{option} must be "):
        ColumnChoices(**choices)


def test_facts_are_for_json_and_the_text_for_people() -> None:
    found = interpreted(136, max_label=2)
    facts = (
        *(("feature_set", "MSLR-WEB"), ("recognized_by", "number of features")),
        *(("baseline_feature", 110), ("drop_features", (134, 135, 136)), ("max_label", 2)),
        ("assumed", ("baseline_feature", "drop_features")),
    )
    assert found.facts == dict(facts)
    assert str(found) == (
        "MSLR-WEB (by its number of features): baseline feature 110, features 134-136 dropped, "
        "labels 0–2"
    )
    named = interpreted(46, named=find("MQ2008"))
    assert str(named) == "LETOR 4.0: baseline feature 25, labels 0–2"
    assert str(interpreted(9)) == "No baseline feature, labels 0–1"
