"""What the simulator is tested on: datasets of a hundred rows, every ranker in every variant."""

from __future__ import annotations

from collections.abc import Iterator

from ebrank.errors import ParameterError
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.testing import rankers
from ebrank.testing.datasets import tiny
from ebrank.testing.rankers import Watched

__all__ = ["tiny", "variants", "watched"]


def variants() -> list[str]:
    """Return every ranker, in all feature settings and with each choice and flag changed once."""
    return [text for name in registry.built_in() for text in _variants(registry.parse(name))]


def _variants(ranker: Ranker) -> Iterator[str]:
    yield ranker.name
    for parameter in ranker.parameters():
        flag = isinstance(parameter.default, bool)
        for other in (not parameter.default,) if flag else parameter.choices:
            if other != parameter.default and fits(ranker, parameter.name, other):
                yield f"{ranker.name}:{parameter.name}={other}"


def fits(ranker: Ranker, name: str, value: object) -> bool:
    """Return whether the other parts of a ranker take this value: not every family learns all."""
    try:
        ranker.with_parameters(**{name: value})
    except ParameterError:
        return False
    return True


def watched(text: str) -> tuple[Ranker, Watched]:
    """Return a ranker to simulate, and the same to look at its trial afterwards."""
    return rankers.watched(registry.parse(text))
