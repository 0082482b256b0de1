"""What the columns and labels of a dataset mean.

The caller's choices come first. For the rest, the catalog decides about a dataset with the name of
a published one. Any other is compared with the known feature sets by its number of features, which
may mislead; so a note says what was assumed and how to change it.

>>> own = interpret("mine", n_features=136, largest_label=3, named=None, choices=ColumnChoices())
>>> own.baseline_feature, own.drop_features, own.max_label
(110, (134, 135, 136), 4)
>>> own.notes[0].partition(".")[0]
'mine has 136 features, like MSLR-WEB'
>>> keep = ColumnChoices(baseline_feature=7, drop_features=(), max_label=3)
>>> interpret("mine", n_features=136, largest_label=3, named=None, choices=keep).notes
()
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from ebrank.data.published import FeatureSet, PublishedDataset, recognize
from ebrank.errors import ParameterError
from ebrank.parameters import check_whole

MAX_LABEL = 30
"""The largest label a file may have. Gains grow as 2^label: no real scale comes close."""
MAX_FEATURE = 100_000
"""The largest feature number a file may have: features become columns of a dense table."""

Auto: TypeAlias = Literal["auto"]
AUTO: Auto = "auto"
NONE = "none"
"""How the command line writes an empty choice."""

BY_NAME = "name"
BY_COUNT = "number of features"


@dataclass(frozen=True)
class ColumnChoices:
    """What the caller says about a dataset; "auto" leaves it to the catalog or the files.

    >>> ColumnChoices(drop_features=[134, 135, 136]).given
    (('drop_features', '134-136'),)

    Attributes:
        baseline_feature: number of the feature with the production ranker's score; None for a
            random order.
        drop_features: numbers of the features derived from clicks; () or None for none.
        max_label: the largest label of the scale.
    """

    baseline_feature: int | Auto | None = AUTO
    drop_features: Collection[int] | Auto | None = AUTO
    max_label: int | Auto = AUTO

    def __post_init__(self) -> None:
        if self.baseline_feature != AUTO:
            check_whole("baseline_feature", self.baseline_feature, at_least=1, optional=True)
        if self.max_label != AUTO:
            check_whole("max_label", self.max_label, at_least=1)
            if self.max_label > MAX_LABEL:
                raise ParameterError(f"max_label must be at most {MAX_LABEL}, not {self.max_label}")
        if not (isinstance(self.drop_features, str) and self.drop_features == AUTO):
            numbers = feature_numbers("drop_features", self.drop_features)
            object.__setattr__(self, "drop_features", numbers)

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """The choices made, as (option, value as on the command line)."""
        return tuple(
            (field.name, as_text(value))
            for field in fields(self)
            if (value := getattr(self, field.name)) != AUTO
        )


@dataclass(frozen=True)
class Interpretation:
    """The final meaning of the columns.

    Attributes:
        name: what to call the dataset in notes.
        feature_set: name of the feature set whose facts were used; None if there is none.
        recognized_by: how it was found, `BY_NAME` or `BY_COUNT`.
        baseline_feature: number of the production ranker's score; None for a random order.
        drop_features: numbers of the features derived from clicks.
        max_label: the largest label of the scale.
        assumed: which of these three follow from the number of features alone.
        notes: what was assumed, and how to change it.
        baseline_unknown: whether there is no baseline because none is known.
    """

    name: str
    feature_set: str | None
    recognized_by: str | None
    baseline_feature: int | None
    drop_features: tuple[int, ...]
    max_label: int
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    baseline_unknown: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """What is known, without the notes, as an object for JSON."""
        return {
            "feature_set": self.feature_set,
            "recognized_by": self.recognized_by,
            "baseline_feature": self.baseline_feature,
            "drop_features": list(self.drop_features),
            "max_label": self.max_label,
            "assumed": list(self.assumed),
        }

    @property
    def experiment_notes(self) -> list[str]:
        """The notes, and what an unknown baseline means for experiments."""
        if not self.baseline_unknown:
            return list(self.notes)
        return [
            *self.notes,
            f"{self.name} has no known baseline, so each trial ranks the initial log in a random "
            "order, and so does bm25. If a feature holds the production ranker's score, name it "
            "with --baseline-feature.",
        ]

    def __str__(self) -> str:
        """Return it in a line.

        >>> choices = ColumnChoices()
        >>> print(interpret("mine", n_features=46, largest_label=2, named=None, choices=choices))
        LETOR 4.0 (by its number of features): baseline feature 25, labels 0–2
        """
        parts = [
            "no baseline feature"
            if self.baseline_feature is None
            else f"baseline feature {self.baseline_feature}"
        ]
        if self.drop_features:
            parts.append(f"features {as_text(self.drop_features)} dropped")
        text = ", ".join([*parts, f"labels 0–{self.max_label}"])
        if self.feature_set is None:
            return text.capitalize()
        how = f" (by its {BY_COUNT})" if self.recognized_by == BY_COUNT else ""
        return f"{self.feature_set}{how}: {text}"


def interpret(
    name: str,
    *,
    n_features: int,
    largest_label: int,
    named: PublishedDataset | None,
    choices: ColumnChoices,
) -> Interpretation:
    """Return what the columns and labels of a dataset mean.

    Args:
        name: what to call the dataset in notes.
        n_features: columns in the files.
        largest_label: the largest label in the files.
        named: the published dataset with the name of the files, if any.
        choices: the caller's.
    """
    feature_set, recognized_by, assumed = _recognized(n_features, named, choices)
    baseline, drop, max_label = _resolved(choices, feature_set, largest_label)
    if baseline is not None and baseline > n_features:
        raise ParameterError(
            f"baseline_feature must be from 1 to {n_features}, the features of {name}, "
            f"not {baseline}"
        )
    return Interpretation(
        name=name,
        feature_set=None if feature_set is None else feature_set.name,
        recognized_by=recognized_by,
        baseline_feature=baseline,
        drop_features=drop,
        max_label=max_label,
        assumed=assumed,
        notes=() if feature_set is None else _notes_on(name, feature_set, assumed),
        baseline_unknown=baseline is None and choices.baseline_feature == AUTO,
    )


def feature_numbers(name: str, given: Collection[int] | None) -> tuple[int, ...]:
    """Return feature numbers in order, each once; raise `ParameterError` for anything else.

    >>> feature_numbers("drop_features", [136, 134, 136])
    (134, 136)
    """
    try:
        numbers = list(() if given is None else given)
    except TypeError:
        raise ParameterError(f"{name} must be a list of feature numbers, not {given!r}") from None
    for number in numbers:
        check_whole(f"each of {name}", number, at_least=1)
    return tuple(sorted({int(number) for number in numbers}))


def as_text(value: object) -> str:
    """Return a choice as on the command line.

    >>> as_text(None), as_text(()), as_text(110), as_text((1, 7, 134, 135, 136))
    ('none', 'none', '110', '1,7,134-136')
    """
    if value is None or value == ():
        return NONE
    if isinstance(value, tuple):
        return ",".join(_runs(value))
    return str(value)


def _resolved(
    choices: ColumnChoices, feature_set: FeatureSet | None, largest_label: int
) -> tuple[int | None, tuple[int, ...], int]:
    """Return baseline, features to drop and largest label: as chosen, else as known."""
    baseline: int | None = feature_set.baseline_feature if feature_set else None
    drop: tuple[int, ...] = feature_set.behavior_features if feature_set else ()
    max_label = feature_set.max_label if feature_set else max(1, largest_label)
    if choices.baseline_feature != AUTO:
        baseline = choices.baseline_feature
    if choices.drop_features != AUTO:
        drop = tuple(choices.drop_features or ())
    if choices.max_label != AUTO:
        max_label = choices.max_label
    return baseline, drop, max_label


def _recognized(
    n_features: int, named: PublishedDataset | None, choices: ColumnChoices
) -> tuple[FeatureSet | None, str | None, tuple[str, ...]]:
    """Return the feature set to consult, how it was found, and which facts are only assumed."""
    feature_set = recognize(n_features)
    if feature_set is None:
        return None, None, ()
    if named is not None and named.feature_set is feature_set:
        return feature_set, BY_NAME, ()
    given = [name for name, _ in choices.given]
    assumed = tuple(field.name for field in fields(choices) if field.name not in given)
    return (feature_set, BY_COUNT, assumed) if assumed else (None, None, ())


def _notes_on(name: str, feature_set: FeatureSet, assumed: Sequence[str]) -> tuple[str, ...]:
    """Return a note on what follows from the number of features, if anything does."""
    dropped = as_text(feature_set.behavior_features)
    facts = {
        "baseline_feature": f"feature {feature_set.baseline_feature} is the baseline (BM25)",
        "drop_features": f"features {dropped}, derived from clicks, are dropped",
        "max_label": f"the largest label is {feature_set.max_label}",
    }
    if not feature_set.behavior_features:
        del facts["drop_features"]
    relevant = [option for option in assumed if option in facts]
    if not relevant:
        return ()
    options = ["--" + option.replace("_", "-") for option in relevant]
    return (
        f"{name} has {feature_set.n_features} features, like {feature_set.name}. So "
        f"{_listed([facts[option] for option in relevant], 'and')}. To change this, set "
        f"{_listed(options, 'or')}.",
    )


def _listed(parts: list[str], conjunction: str) -> str:
    """Return parts as a list in a sentence.

    >>> _listed(["a", "b", "c"], "or"), _listed(["a", "b"], "or"), _listed(["a"], "or")
    ('a, b, or c', 'a or b', 'a')
    """
    if len(parts) < 3:
        return f" {conjunction} ".join(parts)
    return f"{', '.join(parts[:-1])}, {conjunction} {parts[-1]}"


def _runs(numbers: Iterable[int]) -> list[str]:
    """Return ascending numbers as text, three or more in a row as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [
        text
        for run in runs
        for text in (map(str, run) if len(run) < 3 else (f"{run[0]}-{run[-1]}",))
    ]
