"""A prior that learns: what a family, a learner and an estimator make of features and behavior.

    features ─▶ learner ─▶ score (+ item effect) ─▶ family ─▶ prior of the item's relevance

A `Prior` says how; what it has learned is a `State`, which `fitting.fit` returns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination, Valuation
from ebrank.evidence.estimators import ESTIMATORS, Estimator
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.valuation import SMALLEST_P, UNIT
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import map_blocks
from ebrank.model.formula import COUNTS_LOSS, MODEL, SUMS_LOSS, Formula, ItemPrior, Score
from ebrank.model.prior import item_effects
from ebrank.model.prior.base import Family, Learner
from ebrank.model.prior.item_effects import VARIANCE, VARIANCES, Elsewhere
from ebrank.model.prior.rows import BLOCK, Observations, Rows
from ebrank.parameters import Configured, declared, require
from ebrank.typing import Bools, Features, Floats, Ints, State

CURVE_ARRAYS = ("examination", "examination_error", "examination_support")


@dataclass(frozen=True)
class Prior:
    """What is known about items before users act, from features and from other queries.

    Attributes:
        family, learner, estimator: its parts.
        learns_examination: whether it learns how far down users look.
        shares: whether an item's queries share what they learn about it.
        min_impressions: it learns from rows shown more often than this.
    """

    family: Family
    learner: Learner
    estimator: Estimator
    learns_examination: bool
    shares: bool
    min_impressions: int

    # --- what it has learned -------------------------------------------------------------------

    @property
    def other_arrays(self) -> tuple[str, ...]:
        """Names of the arrays in a state that do not belong to the learner.

        `clicks` is how many there were when the last fit started anew.
        """
        if not self.family.learns:
            return ()
        curve = CURVE_ARRAYS if self.learns_examination else ()
        shared = (VARIANCE,) if self.shares else ()
        return (*self.family.learns, "clicks", *curve, *shared)

    def learner_state(self, state: State) -> State | None:
        """Return the learner's part of a state; None if there is none."""
        others = self.other_arrays
        return {name: array for name, array in state.items() if name not in others} or None

    def curve(self, state: State | None, examination: Examination) -> Examination:
        """Return how far down users look: as learned, otherwise as configured."""
        if state is None or "examination" not in state:
            return examination
        return examination.by_slot(state["examination"])

    def check_state(self, state: State) -> None:
        """Raise `ParameterError` unless `fit` could have returned this state."""
        self.learner.check_state(self.learner_state(state) or {})
        self.family.check_state({n: a for n, a in state.items() if n in self.family.learns})
        if self.learns_examination:
            _check_curve(state)
        for name in ("clicks", VARIANCE):
            if name in state and state[name].shape != (1,):
                raise ParameterError(f"{name} must be one number")
        if not 0.0 <= item_effects.variance_of(state) <= max(VARIANCES):
            raise ParameterError(f"{VARIANCE} must be a number from 0 to {max(VARIANCES):g}")

    # --- priors of items -----------------------------------------------------------------------

    def of_items(
        self,
        state: State | None,
        features: Features,
        threads: int | None = None,
        elsewhere: Elsewhere | None = None,
    ) -> ItemPrior:
        """Return the prior of items from their features, and from other queries if given.

        Without a state, all are the same.
        """
        scores = self.scores(state, features, threads)
        prior = self.family.prior(scores if elsewhere is None else scores + elsewhere.effect)
        fits = len(prior.a) == len(scores) and len(prior.b) in (1, len(scores))
        require(
            fits, f"the family {self.family.name} gives no prior for each of {len(scores)} rows"
        )
        return prior

    def scores(self, state: State | None, features: Features, threads: int | None = None) -> Floats:
        """Return the learner's score of each row."""
        matrix = _matrix(features)
        learned = None if state is None else self.learner_state(state)
        if learned is None:
            return np.zeros(len(matrix))
        # Kernels read scores by pointer, and a learner may return a view with gaps.
        return np.ascontiguousarray(self.learner.scores(learned, matrix, threads), dtype=np.float64)

    # --- other queries -------------------------------------------------------------------------

    def elsewhere(
        self,
        state: State | None,
        table: Observations,
        examination: Examination,
        threads: int | None = None,
    ) -> Elsewhere | None:
        """Return the evidence from other queries about each row's item; None if it does not count.

        Items have effects only where a fit found that they help.
        """
        variance = item_effects.variance_of(state)
        if table.items is None or variance == 0.0:
            return None
        others = self.other_messages(state, table, examination, threads)
        return item_effects.elsewhere(others, variance)

    def other_messages(
        self,
        state: State | None,
        table: Observations,
        examination: Examination,
        threads: int | None = None,
        rows: Ints | None = None,
    ) -> Ints:
        """Return the sums of the messages of other queries about the items of all rows, or some."""
        from ebrank.model.scoring import scores  # Numba takes a while to import

        if rows is not None:  # messages about other items are not needed
            asked = np.zeros(1 + table.numbered_items.max(), np.bool_)
            asked[table.numbered_items[rows]] = True
            speaking = asked[table.numbered_items]
            table, rows = table.part(speaking), np.searchsorted(np.flatnonzero(speaking), rows)
        items, curve = table.numbered_items, self.curve(state, examination)
        prior = self.of_items(state, table.features, threads)
        family: Any = type(self.family)
        by_features = self._bound(mean_formula(family), table.behavior.valuation(curve), state)
        messages = np.empty((len(items), 2), np.int32)

        def write(start: int, stop: int) -> None:
            behavior = table.behavior[start:stop]
            mean = scores(by_features, prior.rows(slice(start, stop)), behavior, curve)
            sums = behavior.sums(curve, threads=1)
            messages[start:stop] = item_effects.messages(mean, sums.clicks, sums.exposure)

        map_blocks(write, total=len(items), block=BLOCK, threads=threads)
        return item_effects.others(messages, items, rows)

    # --- how well it explains behavior ---------------------------------------------------------

    def rows(
        self,
        features: Features,
        behavior: BehaviorStats,
        examination: Examination,
        threads: int | None = None,
        state: State | None = None,
    ) -> Rows:
        """Return the rows to fit the learner on, with the family's loss."""
        sums = behavior.sums(examination, threads=threads)
        valuation = behavior.valuation(examination)
        return Rows(
            features=read_only(_matrix(features)),
            evidence=read_only(self.estimator.matrix(behavior, sums)),
            included=read_only(sums.shown > self.min_impressions),
            loss=self._loss.compiled,
            table=valuation.table,
            slots=valuation.slots,
            behaviors=valuation.behaviors,
            parameters=self._parameters(valuation, state),
            learned=len(self._loss.parameters),
            threads=threads,
        )

    def with_state(self, rows: Rows, valuation: Valuation, state: State | None) -> Rows:
        """Return the rows under another curve and another state."""
        return replace(rows, table=valuation.table, parameters=self._parameters(valuation, state))

    def losses(
        self,
        state: State | None,
        table: Observations,
        examination: Examination,
        threads: int | None = None,
        rows: Bools | None = None,
    ) -> Floats:
        """Return −log of the probability of the behavior of all rows, or of some.

        It is not a number if a row was never shown.

        A click at a rank whose p is 0 is not impossible, nor does it go uncounted, which would
        favor the curve that expects it least: there, p is the smallest that a curve may have.
        """
        curve = self.curve(state, examination)
        elsewhere = self.elsewhere(state, table, examination, threads)
        if rows is not None:  # evidence from other queries is that of all rows
            table = table.part(rows)
            elsewhere = elsewhere and elsewhere.rows(np.flatnonzero(rows))
        prior = self.of_items(state, table.features, threads, elsewhere)
        losses = np.full(len(table.behavior), np.nan)
        sums = table.behavior.sums(curve, threads=threads)
        shown = sums.shown > 0
        if self.family.learns:
            p = np.maximum(table.behavior.valuation(curve).exposure * UNIT, SMALLEST_P)
            counted = self.with_state(
                self.rows(table.features, table.behavior, curve, threads, state),
                Valuation.by_slot(p, table.behavior.behaviors),
                state,
            )
            counted = replace(counted, included=read_only(shown))
            losses[shown] = counted.losses_and_slopes(prior.a)[0][shown]
        else:
            places = np.flatnonzero(shown)
            losses[shown] = self.family.marginal_loss(prior.rows(places), sums.rows(places))
        return losses

    @property
    def _loss(self) -> Formula:
        family: Any = type(self.family)
        return loss_formula(family, self.estimator.name)

    def _bound(self, formula: Formula, valuation: Valuation, state: State | None) -> Score:
        values = {name: float(getattr(self.family, name)) for name in formula.parameters}
        return formula.bind(self.family.learned(state, valuation), **values)

    def _parameters(self, valuation: Valuation, state: State | None) -> Floats:
        """Return the parameters of the loss, followed by what was learned."""
        return read_only(self._bound(self._loss, valuation, state).parameters)


@cache
def loss_formula(family: Any, estimator: str) -> Formula:  # noqa: ANN401 (a class)
    """Return the formula of a family's loss."""
    frame = COUNTS_LOSS if ESTIMATORS[estimator].by_rank else SUMS_LOSS
    return Formula(family.posteriors[estimator].loss, *numbers_of(family), frame=frame)


@cache
def mean_formula(family: Any) -> Formula:  # noqa: ANN401 (a class)
    """Return the formula of the prior mean; the same object for all priors of a family."""
    names = (name for name in numbers_of(family) if name not in family.item)
    return Formula(family.mean, *names, given=dict(zip(family.item, MODEL, strict=False)))


def numbers_of(part: type[Configured], *unset: str) -> tuple[str, ...]:
    """Return the parameters of a part that its functions may name.

    These are its numbers, if they are set by default or named here.
    """
    return tuple(
        p.name
        for p in declared(part)
        if p.kind is not str and (p.default is not None or p.name in unset)
    )


def _check_curve(state: State) -> None:
    """Raise unless these are a curve, its errors and its support."""
    curves = [state.get(name) for name in CURVE_ARRAYS]
    if all(curve is None for curve in curves):
        return  # nothing was ever shown
    if any(curve is None or curve.ndim != 1 or not 0 < len(curve) <= SLOTS for curve in curves):
        raise ParameterError("a learned examination needs a number for each slot")
    p = state["examination"]
    if len({len(state[name]) for name in CURVE_ARRAYS}) > 1:
        raise ParameterError("a learned examination, its error and its support differ in length")
    if not np.all((p == 0.0) | (p >= SMALLEST_P) & (p <= 1.0)) or not p.any():
        raise ParameterError(
            f"a learned examination needs probabilities from {SMALLEST_P:g} to 1, or 0 but not all"
        )


def _matrix(features: Any) -> Features:  # noqa: ANN401 (anything like an array)
    """Return features as a row-major float32 matrix, without a copy if they are one already."""
    matrix = np.ascontiguousarray(features, dtype=np.float32)
    if matrix.ndim != 2:
        raise ParameterError(f"features must be a matrix (rows, features), not {matrix.ndim}-d")
    return matrix
