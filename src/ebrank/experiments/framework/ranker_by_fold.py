"""A ranker whose parameters differ from fold to fold, as choosing them in each fold makes it.

Its text has the values in the order of the folds, so that people can type what was tuned:

>>> tuned = parse("ebrank:epsilon=20/5,estimator=exposure", folds=2)
>>> print(tuned)
ebrank:epsilon=20/5,estimator=exposure
>>> print(in_fold(tuned, 1))
ebrank:epsilon=5,estimator=exposure

What is the same in all folds is a plain ranker:

>>> print(tuned.with_parameters(epsilon=0.0), parse("ebrank:epsilon=3/3", folds=2))
ebrank:epsilon=0,estimator=exposure ebrank:epsilon=3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ebrank.errors import ParameterError
from ebrank.parameters import typed
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker, Setting

SEPARATOR = "/"


@dataclass(frozen=True)
class RankerByFold:
    """Rankers of one class, one for each fold; not all of them are the same."""

    rankers: tuple[Ranker, ...]

    @property
    def name(self) -> str:
        """What the command line calls it."""
        return self.rankers[0].name

    @property
    def setting(self) -> Setting:
        """The feature setting that it runs in."""
        return self.rankers[0].setting

    def value(self, name: str) -> Any:  # noqa: ANN401 (of the parameter's type)
        """Return the value of a parameter; as a text, such as `20/5`, if it is not the same."""
        values = [ranker.value(name) for ranker in self.rankers]
        if len(set(values)) == 1:
            return values[0]
        return SEPARATOR.join(map(typed, values))

    def with_parameters(self, **changes: Any) -> AnyRanker:  # noqa: ANN401 (of any type)
        """Return the same ranker with some parameters changed in all folds."""
        return by_fold([ranker.with_parameters(**changes) for ranker in self.rankers])

    def __str__(self) -> str:
        """Return the text that `parse` reads back."""
        first = self.rankers[0]
        settings = [
            f"{parameter.name}={typed(self.value(parameter.name))}"
            for parameter in first.parameters()
            if self.value(parameter.name) != parameter.default
        ]
        return f"{first.called}:{','.join(settings)}"


AnyRanker: TypeAlias = Ranker | RankerByFold


def by_fold(rankers: Sequence[Ranker]) -> AnyRanker:
    """Return what runs in each fold, as one; a plain ranker if it is the same in all."""
    return rankers[0] if len(set(rankers)) == 1 else RankerByFold(tuple(rankers))


def in_fold(ranker: AnyRanker, place: int) -> Ranker:
    """Return what runs in the fold at a place in their order, from 0."""
    return ranker.rankers[place] if isinstance(ranker, RankerByFold) else ranker


def parse(text: str, folds: int) -> AnyRanker:
    """Return the ranker that a text such as `ebrank:epsilon=20/5` names, given how many folds.

    >>> parse("ebrank:epsilon=20/5", folds=3)
    Traceback (most recent call last):
    ebrank.errors.ParameterError: ebrank:epsilon=20/5: 2 values for 3 folds; give one for each \
fold, or one for all
    """
    settings = []
    for setting in text.split(","):
        begin, equals, value = setting.rpartition("=")
        values = value.split(SEPARATOR)
        if len(values) not in (1, folds):
            raise ParameterError(
                f"{text}: {len(values)} values for {folds} folds; give one for each fold, or one "
                "for all"
            )
        settings.append([begin + equals + own for own in values * (folds // len(values))])
    return by_fold([registry.parse(",".join(own)) for own in zip(*settings, strict=True)])
