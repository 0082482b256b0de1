"""What the simulator is tested on: datasets of a hundred rows, every ranker in every variant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ebrank.rankers import registry
from ebrank.rankers.base import Ranker, Trial, TrialLearner
from ebrank.testing.datasets import tiny

__all__ = ["Watched", "tiny", "variants", "watched"]


def variants() -> list[str]:
    """Return every ranker, in all feature settings and with each choice and flag changed once."""
    return [text for name in registry.known() for text in _variants(registry.parse(name))]


def _variants(ranker: Ranker) -> Iterator[str]:
    yield ranker.name
    for parameter in ranker.parameters():
        flag = isinstance(parameter.default, bool)
        for other in (not parameter.default,) if flag else parameter.choices:
            if other != parameter.default:
                yield f"{ranker.name}:{parameter.name}={other}"


class Watched:
    """A ranker whose trial can be looked at: what was shown and clicked, and each model."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker
        self.trial: Trial | None = None

    def learner(self, trial: Trial) -> TrialLearner:
        self.trial = trial
        return self.ranker.learner(trial)

    def __getattr__(self, name: str) -> object:
        return getattr(self.ranker, name)


def watched(text: str) -> tuple[Ranker, Watched]:
    """Return a ranker to simulate, and the same to look at its trial afterwards."""
    watch = Watched(registry.parse(text))
    return cast(Ranker, watch), watch
