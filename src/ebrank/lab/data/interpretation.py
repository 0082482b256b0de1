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

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, Literal, TypeAlias

from ebrank.errors import ParameterError
from ebrank.lab.data.published import FeatureSet, PublishedDataset, recognize
from ebrank.parameters import check_whole, listed

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

    >>> ColumnChoices(drop_features=[136, 134, 135, 136]).drop_features
    (134, 135, 136)

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
            object.__setattr__(self, "drop_features", _in_order(self.drop_features))


OPTIONS = tuple(field.name for field in fields(ColumnChoices))


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
        others = ("name", "notes", "baseline_unknown")
        return {name: value for name, value in vars(self).items() if name not in others}

    @property
    def experiment_notes(self) -> list[str]:
        """The notes, and what an unknown baseline means for experiments."""
        unknown = (
            f"{self.name} has no known baseline, so each trial ranks the initial log in a random "
            "order, and so does bm25. If a feature holds the production ranker's score, name it "
            "with --baseline-feature."
        )
        return [*self.notes, *([unknown] if self.baseline_unknown else [])]

    def __str__(self) -> str:
        """Return it in a line.

        >>> choices = ColumnChoices()
        >>> print(interpret("mine", n_features=46, largest_label=2, named=None, choices=choices))
        LETOR 4.0 (by its number of features): baseline feature 25, labels 0–2
        """
        baseline, dropped = self.baseline_feature, as_text(self.drop_features)
        text = "no baseline feature" if baseline is None else f"baseline feature {baseline}"
        text += f", features {dropped} dropped" if self.drop_features else ""
        text += f", labels 0–{self.max_label}"
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
    feature_set = recognize(n_features)
    by_name = named is not None and named.feature_set is feature_set
    left_open = [option for option in OPTIONS if getattr(choices, option) == AUTO]
    if feature_set is None or not (by_name or left_open):
        feature_set, by_name = None, False
    defaults = feature_set or FeatureSet(n_features=n_features, max_label=max(1, largest_label))
    baseline, drop, max_label = (
        getattr(defaults if option in left_open else choices, option) for option in OPTIONS
    )
    if baseline is not None and baseline > n_features:
        raise ParameterError(
            f"baseline_feature must be from 1 to {n_features}, the features of {name}, "
            f"not {baseline}"
        )
    assumed = () if feature_set is None or by_name else tuple(left_open)
    return Interpretation(
        name=name,
        feature_set=defaults.name,
        recognized_by=None if feature_set is None else BY_NAME if by_name else BY_COUNT,
        baseline_feature=baseline,
        drop_features=drop,
        max_label=max_label,
        assumed=assumed,
        notes=tuple(_notes_on(name, defaults, assumed)),
        baseline_unknown=baseline is None and choices.baseline_feature == AUTO,
    )


def _in_order(given: Collection[int] | None) -> tuple[int, ...]:
    """Return the features to drop in order, each once; raise `ParameterError` for anything else."""
    try:
        numbers = list(() if given is None else given)
    except TypeError:
        raise ParameterError(
            f"drop_features must be a list of feature numbers, not {given!r}"
        ) from None
    for number in numbers:
        check_whole("each of drop_features", number, at_least=1)
    return tuple(sorted({int(number) for number in numbers}))


def as_text(value: object) -> str:
    """Return a choice as on the command line.

    >>> as_text(None), as_text(()), as_text(110), as_text((1, 7, 134, 135, 136))
    ('none', 'none', '110', '1,7,134-136')
    """
    if value is None or value == ():
        return NONE
    if not isinstance(value, tuple):
        return str(value)
    texts = []
    for _, group in groupby(enumerate(value), key=lambda place: place[1] - place[0]):
        run = [str(number) for _, number in group]  # consecutive numbers
        texts += run if len(run) < 3 else [f"{run[0]}-{run[-1]}"]
    return ",".join(texts)


def _notes_on(name: str, feature_set: FeatureSet, assumed: Sequence[str]) -> Iterator[str]:
    """Yield a note on what follows from the number of features, if anything does."""
    dropped = as_text(feature_set.drop_features)
    facts = {
        "baseline_feature": f"feature {feature_set.baseline_feature} is the baseline (BM25)",
        "drop_features": f"features {dropped}, derived from clicks, are dropped",
        "max_label": f"the largest label is {feature_set.max_label}",
    }
    relevant = [o for o in assumed if o != "drop_features" or feature_set.drop_features]
    if relevant:
        options = ["--" + option.replace("_", "-") for option in relevant]
        yield (
            f"{name} has {feature_set.n_features} features, like {feature_set.name}. So "
            f"{listed([facts[option] for option in relevant])}. To change this, set "
            f"{listed(options, 'or')}."
        )
