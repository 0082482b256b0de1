"""What a prior is made of: a learner that scores features, and a family that reads the score.

    features ─▶ learner ─▶ score ─▶ family ─▶ prior of the item's relevance

The family also says how behavior turns the prior into a posterior, and how well a score explains
behavior: the loss that the learner minimizes. Both are plain functions that name what they need
(see `ebrank.model.formula`), so the same code runs in NumPy, in the simulator and in the
service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ebrank.evidence import Sums, Valuation
from ebrank.model.formula import NOTHING, Function, ItemPrior
from ebrank.model.prior.rows import Rows
from ebrank.parameters import Configured
from ebrank.typing import Features, Floats, State


@dataclass(frozen=True)
class Posterior:
    """How a family reads one kind of evidence; each field is a function, or "module:function".

    Functions name what they need: the family's numbers for the item, and the quantities of the
    evidence (`hits` and `trials`; for `exact` also the counts themselves). A loss has no numbers
    for the item yet: it names the `score`, the family's parameters, and `hits` and `trials`, or for
    `exact` the counts.

    Attributes:
        relevance: posterior mean.
        spread: posterior standard deviation.
        draw: a draw from the posterior, addressed by `key`.
        loss: of a learner's `score`, with its slope: a pair.
        given: further quantities that these functions name, computed once for all of them.
        planned: quantities that are computed otherwise if the bonus has a `horizon`; above all
            `upside`, what an item is worth beyond its relevance if so many more lists matter.
    """

    relevance: Function | str
    spread: Function | str
    draw: Function | str
    loss: Function | str
    given: Mapping[str, Function | str] = field(default_factory=dict)
    planned: Mapping[str, Function | str] = field(default_factory=dict)


def mean_of(moments: tuple[float, ...]) -> float:
    """Return the mean of a posterior whose moments are computed together."""
    return moments[0]


def spread_of(moments: tuple[float, ...]) -> float:
    """Return its standard deviation."""
    return moments[1]


class Family(Configured):
    """A family of distributions of relevance; to add one, derive from it in your own file.

    Functions may also name the family's own parameters.

    Class attributes:
        item: what functions call the model's one or two numbers for an item.
        mean: mean of the prior, a function of these numbers.
        posteriors: how each kind of evidence is read.
        learns: names of the arrays that `fit` learns, for families that learn a shape.
    """

    item: ClassVar[tuple[str, ...]]
    mean: ClassVar[Function | str]
    posteriors: ClassVar[Mapping[str, Posterior]]
    learns: ClassVar[tuple[str, ...]] = ()

    def prior(self, scores: Floats) -> ItemPrior:
        """Return the prior of items with these scores; a score of 0 is that of an unfitted prior.

        A family whose second number is the same for all items returns it once.
        """
        raise NotImplementedError

    def interval(self, prior: ItemPrior, sums: Sums, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the central credible interval of each item's relevance, in [0, 1].

        The relevance of an item that was seen often lies between them.
        Not needed for exact evidence, whose posterior has a reliable mean and spread.
        """
        raise NotImplementedError

    def log_prior(self, prior: ItemPrior, learned: Floats, u: Floats) -> Floats:
        """Return the log of the prior's density of logits, a row per item, up to a constant.

        `learned` is what `learned` returned. Needed for exact evidence only.
        """
        raise NotImplementedError

    def marginal_loss(self, prior: ItemPrior, sums: Sums) -> Floats:
        """Return −log of the probability of each item's behavior, to compare models.

        Not needed for a family that learns: its loss is complete.
        """
        raise NotImplementedError

    def learned(self, state: State | None, valuation: Valuation) -> Floats:
        """Return the numbers that functions call `learned`, given what `fit` returned."""
        return NOTHING

    def begin(self, sums: Sums, state: State) -> tuple[State, float]:
        """Return the state to begin a fit with, given the evidence to be fitted.

        The number says by what to multiply scores so that they mean the same as before.
        """
        return state, 1.0

    def fit(self, rows: Rows, scores: Floats, start: State) -> State:
        """Return what the family itself learns, given the learner's scores of the rows.

        `start` is the state so far, perhaps empty.
        """
        return {}

    def check_state(self, state: State) -> None:
        """Raise `ParameterError` unless `fit` could have returned this state."""


class Learner(Configured):
    """A model from features to a score; to add one, derive from it in your own file.

    It keeps no state: `fit` returns what was learned as plain arrays, and `scores` takes it back.
    """

    def fit(self, rows: Rows, validation: Rows | None, start: State | None) -> State:
        """Return what minimizes the loss of the rows, starting from an earlier state if given.

        Do not learn from the rows of `validation`: they decide when to stop and how much to
        regularize. Without them, `rows.folds()` says which rows to hold out for that.

        The earlier state may have seen rows that are held out now, to judge the fit: it may say
        where to start, but not where to end.
        """
        raise NotImplementedError

    def scores(self, state: State, features: Features, threads: int | None = None) -> Floats:
        """Return the score of each row of features."""
        raise NotImplementedError

    def scaled(self, state: State, factor: float) -> State:
        """Return the state whose scores are so many times as large: where the next fit begins."""
        return state

    def check_state(self, state: State) -> None:
        """Raise `ParameterError` unless `fit` could have returned this state.

        A state may come from somebody else's file.
        """

    def example_state(self, n_features: int) -> State | None:
        """Return some state that uses all compiled code, for a server to warm up with.

        None if the learner compiles nothing.
        """
        return None
