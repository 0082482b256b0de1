"""What columns and labels mean: the caller's word, the catalog's, or an assumption that is said.

The tests of `ebrank data` hold the texts to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ebrank.errors import ParameterError
from ebrank.lab.data.interpretation import (
    BY_COUNT,
    BY_NAME,
    ColumnChoices,
    Interpretation,
    interpret,
)
from ebrank.lab.data.published import find

LETOR, MSLR = (25, (), 2), (110, (134, 135, 136), 4)
ALL = ("baseline_feature", "drop_features", "max_label")
CHOSEN = {"baseline_feature": 3, "drop_features": [7, 5, 7], "max_label": 9}
NOTHING = {"baseline_feature": None, "drop_features": (), "max_label": 9}


def interpreted(
    n_features: int,
    named: str = "",
    largest_label: int = 1,
    **choices: Any,  # noqa: ANN401
) -> Interpretation:
    return interpret(
        "mine",
        n_features=n_features,
        largest_label=largest_label,
        named=find(named),
        choices=ColumnChoices(**choices),
    )


@pytest.mark.parametrize(
    ("n_features", "named", "choices", "columns", "recognized_by", "assumed"),
    [
        (46, "", {}, LETOR, BY_COUNT, ALL),
        (136, "", {}, MSLR, BY_COUNT, ALL),
        (46, "MQ2008", {}, LETOR, BY_NAME, ()),
        (136, "MSLR-WEB10K", {}, MSLR, BY_NAME, ()),
        (136, "MQ2008", {}, MSLR, BY_COUNT, ALL),
        (50, "MQ2008", {}, (None, (), 1), None, ()),
        (136, "", CHOSEN, (3, (5, 7), 9), None, ()),
        (136, "MSLR-WEB30K", CHOSEN, (3, (5, 7), 9), BY_NAME, ()),
        (136, "", NOTHING, (None, (), 9), None, ()),
        (136, "MSLR-WEB30K", NOTHING, (None, (), 9), BY_NAME, ()),
        (136, "", {"drop_features": ()}, (110, (), 4), BY_COUNT, ALL[::2]),
        (9, "", {"largest_label": 3}, (None, (), 3), None, ()),
        (9, "", {"largest_label": 0}, (None, (), 1), None, ()),
    ],
)
def test_choices_come_first_then_the_catalog_then_the_number_of_features(
    n_features: int,
    named: str,
    choices: dict[str, Any],
    columns: tuple[object, ...],
    recognized_by: str | None,
    assumed: tuple[str, ...],
) -> None:
    found = interpreted(n_features, named, **choices)
    assert (found.baseline_feature, found.drop_features, found.max_label) == columns
    assert (found.recognized_by, found.assumed) == (recognized_by, assumed)
    assert len(found.notes) == (recognized_by == BY_COUNT)


def test_a_note_is_on_what_is_left_open_only() -> None:
    [note] = interpreted(136, drop_features=()).notes
    assert "dropped" not in note
    assert note.endswith("set --baseline-feature or --max-label.")
    assert interpreted(46, baseline_feature=1, max_label=2).notes == ()


def test_an_unknown_baseline_is_said_where_it_matters() -> None:
    found = interpreted(9)
    assert found.notes == ()
    [note] = found.experiment_notes
    assert note.startswith("mine has no known baseline, so each trial ranks the initial log in a ")
    assert interpreted(9, baseline_feature=None).experiment_notes == []
    with pytest.raises(ParameterError, match=r"baseline_feature must be from 1 to 9, .* not 10"):
        interpreted(9, baseline_feature=10)


@pytest.mark.parametrize(
    ("drop_features", "numbers"), [(None, ()), (np.array([2, 1]), (1, 2)), (range(1, 4), (1, 2, 3))]
)
def test_features_to_drop_are_put_in_order(drop_features: Any, numbers: tuple[int, ...]) -> None:  # noqa: ANN401
    assert ColumnChoices(drop_features=drop_features).drop_features == numbers


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
