"""A policy: how to score items, combined from four parts.

| part | question | built in |
|---|---|---|
| family (`ebrank.model.prior.families`) | how is relevance distributed? | `beta`, `shape` |
| learner (`ebrank.model.prior.learners`) | what do features say? | `linear`, `trees` |
| estimator (`ebrank.evidence.estimators`) | how are counts read? | `ips`, `exposure`, `exact` |
| bonus (`ebrank.model.bonus`) | how much is exploration worth? | `marginal_certainty`, ... |

A policy has a text form, the same in the lab, `EBRanker` and the service:

>>> policy = parse("ebrank:epsilon=5,estimator=exposure")
>>> policy.bonus
MarginalCertainty(epsilon=5.0)
>>> str(policy)
'ebrank:epsilon=5,estimator=exposure'

Name your own part by its class: `ebrank:bonus=mymodule:MyBonus,width=2`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from ebrank.environment.plugins import load_class
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination, Valuation
from ebrank.evidence.estimators import ESTIMATORS, Estimator
from ebrank.evidence.slots import SLOTS
from ebrank.evidence.valuation import SMALLEST_P, UNIT
from ebrank.kernels.arrays import read_only
from ebrank.kernels.threads import map_blocks
from ebrank.model.bonus import Bonus
from ebrank.model.bonus.horizon import USUAL
from ebrank.model.policy.composition import HORIZON, Scores, loss_formula, score_formula
from ebrank.model.policy.formula import Formula, Score
from ebrank.model.prior import fitting, item_effects
from ebrank.model.prior.base import Family, ItemPrior, Learner, State
from ebrank.model.prior.item_effects import VARIANCE, VARIANCES, Elsewhere
from ebrank.model.prior.rows import BLOCK, Rows
from ebrank.parameters import (
    Configured,
    Parameter,
    declared,
    near,
    param,
    read_settings,
    require,
    to_text,
)
from ebrank.typing import Bools, Features, Floats, Ints


class Preset(NamedTuple):
    """A policy with a name: what it does, and where it differs from `ebrank`."""

    help: str
    differences: Mapping[str, Any]


PRESETS = {
    "ebrank": Preset(
        "Posterior relevance from an empirical Bayes prior, plus a bonus for marginal certainty.",
        {},
    ),
    "thompson": Preset(
        "Thompson sampling: sort by a draw from EBRank's posterior.",
        {"estimator": "exposure", "bonus": "draw"},
    ),
    "auto": Preset(
        "Nothing to tune: learns the prior's shape and how far down users look, and explores by "
        "how many more lists matter.",
        {
            "estimator": "exact",
            "family": "shape",
            "bonus": "horizon",
            "examination": "learned",
            "shared": "learned",
        },
    ),
}

PARTS = ("family", "learner", "bonus")
ADDONS = {"trees": "ebrank.addons.trees"}
"""Parts outside of the core, which imports them when a policy names them."""

CURVE_ARRAYS = ("examination", "examination_error", "examination_support")

P = TypeVar("P", bound=Configured)


@dataclass(frozen=True)
class Choices(Configured):
    """Which parts a policy is made of, and what it learns from."""

    name = "policy"
    help = "The parts of a policy."

    estimator: str = param(
        "ips",
        "evidence: C of n (ips), c of E (exposure), counts by rank (exact)",
        choices=tuple(ESTIMATORS),
    )
    family: str = param("beta", "distribution of relevance", choices=("beta", "shape"), open=True)
    learner: str = param("linear", "model of the features", choices=("linear", "trees"), open=True)
    bonus: str = param(
        "marginal_certainty",
        "how much exploration is worth",
        choices=("marginal_certainty", "horizon", "upper", "none", "draw"),
        open=True,
    )
    examination: Literal["given", "learned"] = param(
        "given",
        "how far down users look: as configured (given), or learned along with the prior",
        choices=("given", "learned"),
    )
    shared: Literal["learned", "none"] = param(
        "none",
        "what an item earned in other queries: counts as far as it helps (learned), or not (none)",
        choices=("learned", "none"),
    )
    part: Literal["both", "prior", "behavior"] = param(
        "both",
        "ablation: rank by the prior's or by behavior's part of the estimate alone, unexplored",
        choices=("both", "prior", "behavior"),
    )
    min_impressions: int = param(0, "train on rows shown more often than this", at_least=0)
    clamp: bool = param(False, "limit debiased clicks to the trials when training")


@dataclass(frozen=True)
class Policy:
    """How to score items; create one with `parse` or `make`.

    Attributes:
        name: name of the preset it started from.
        choices: which parts it is made of.
        family, learner, bonus: the parts, with their parameters.
    """

    name: str
    choices: Choices
    family: Family
    learner: Learner
    bonus: Bonus

    # --- text and parameters -------------------------------------------------------------------

    @property
    def help(self) -> str:
        """What it does, in a sentence."""
        return PRESETS[self.name].help

    @property
    def parts(self) -> tuple[Configured, ...]:
        """Everything that has parameters."""
        return (self.bonus, self.choices, self.family, self.learner)

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters of all parts, with the defaults of the preset."""
        differences = PRESETS[self.name].differences
        for part in self.parts:
            for parameter in declared(type(part)):
                default = differences.get(parameter.name, parameter.default)
                yield replace(parameter, default=default)

    def values(self) -> dict[str, Any]:
        """Return the value of every parameter."""
        return {p.name: getattr(part, p.name) for part in self.parts for p in declared(type(part))}

    def with_parameters(self, **changes: Any) -> Policy:  # noqa: ANN401 (of any type)
        """Return the same policy with some parameters changed.

        Replacing a part removes its parameters.
        """
        replaced = [
            getattr(self, kind)
            for kind in PARTS
            if changes.get(kind, getattr(self.choices, kind)) != getattr(self.choices, kind)
        ]
        gone = {parameter.name for part in replaced for parameter in declared(type(part))}
        kept = {name: value for name, value in self.values().items() if name not in gone}
        return make(self.name, **kept | changes)

    def __str__(self) -> str:
        """Return the text that `parse` reads back, with parameters not at their default.

        Parts come first: their names say which parameters there are.
        """
        ordered = sorted(self.parameters(), key=lambda parameter: parameter.name not in PARTS)
        return to_text(self.name, ordered, self.values().__getitem__)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the text: compiled functions stay behind."""
        return parse, (str(self),)

    # --- scores --------------------------------------------------------------------------------

    @property
    def estimator(self) -> Estimator:
        """The kind of evidence."""
        return ESTIMATORS[self.choices.estimator]

    @property
    def noisy(self) -> bool:
        """Whether it samples new scores for every list."""
        return self.bonus.noisy and self.choices.part == "both"

    def scores(self, state: State | None, valuation: Valuation, lists: float = USUAL) -> Scores:
        """Return how to score items, given what was learned and how to weight counts.

        `lists` is H, how many more lists of a query to plan for.
        """
        learned = self.family.learned(state, valuation)
        family: Any = type(self.family)
        bonus: Any = type(self.bonus)
        part, estimator = self.choices.part, self.choices.estimator
        formulas = (
            score_formula(family, bonus, estimator, part),
            score_formula(family, bonus, estimator, part, paired=True),
            score_formula(family, None, estimator, part),
            score_formula(family, None, estimator, "prior"),
            score_formula(family, None, estimator, "spread"),
        )
        return Scores(*(self._bound(formula, learned, lists) for formula in formulas))

    def _bound(self, formula: Formula, learned: Floats, lists: float = USUAL) -> Score:
        values = self.values()
        if self.plans:
            values[HORIZON] = lists
        own = {name: float(values[name]) for name in formula.parameters}
        return formula.bind(learned, **own)

    @cached_property
    def plans(self) -> bool:
        """Whether its scores depend on how many lists of a query to plan for."""
        return self.values().get(HORIZON, 0.0) is None

    # --- learning ------------------------------------------------------------------------------

    @property
    def learns_examination(self) -> bool:
        """Whether it learns how far down users look."""
        return self.choices.examination == "learned"

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

    @property
    def shares(self) -> bool:
        """Whether an item's queries share what they learn about it."""
        return self.choices.shared == "learned"

    def elsewhere(
        self,
        state: State | None,
        table: fitting.Observations,
        examination: Examination,
        threads: int | None = None,
    ) -> Elsewhere | None:
        """Return what the item of each row earned in other queries; None if that does not count."""
        variance = item_effects.variance_of(state)
        if table.items is None or variance == 0.0:
            return None
        others = self.other_messages(state, table, examination, threads)
        return item_effects.elsewhere(others, variance)

    def other_messages(
        self,
        state: State | None,
        table: fitting.Observations,
        examination: Examination,
        threads: int | None = None,
        rows: Ints | None = None,
    ) -> Ints:
        """Return the sums of what other queries say about the items of all rows, or of some."""
        from ebrank.model.policy.scoring import scores  # Numba takes a while to import

        if rows is not None:  # rows about other items need say nothing
            asked = np.zeros(1 + table.numbered_items.max(), np.bool_)
            asked[table.numbered_items[rows]] = True
            speaking = asked[table.numbered_items]
            table, rows = table.part(speaking), np.searchsorted(np.flatnonzero(speaking), rows)
        items, curve = table.numbered_items, self.curve(state, examination)
        prior = self.prior(state, table.features, threads)
        by_features = self.scores(state, table.behavior.valuation(curve)).prior
        own = np.empty((len(items), 2), np.int32)

        def write(start: int, stop: int) -> None:
            behavior = table.behavior[start:stop]
            mean = scores(by_features, prior.rows(slice(start, stop)), behavior, curve)
            sums = behavior.sums(curve, threads=1)
            own[start:stop] = item_effects.messages(mean, sums.clicks, sums.exposure)

        map_blocks(write, total=len(items), block=BLOCK, threads=threads)
        return item_effects.others(own, items, rows)

    def losses(
        self,
        state: State | None,
        table: fitting.Observations,
        examination: Examination,
        threads: int | None = None,
        rows: Bools | None = None,
    ) -> Floats:
        """Return −log of the probability of the behavior of all rows, or of some.

        It is not a number if a row was never shown.

        A click where nobody is believed to look is not impossible, nor does it go uncounted, which
        would favor the curve that expects it least: there, p is the smallest that a curve may have.
        """
        curve = self.curve(state, examination)
        earned = self.elsewhere(state, table, examination, threads)
        if rows is not None:  # all others say something about their items
            table = table.part(rows)
            earned = earned and earned.rows(np.flatnonzero(rows))
        prior = self.prior(state, table.features, threads, earned)
        losses = np.full(len(table.behavior), np.nan)
        sums = table.behavior.sums(curve, threads=threads)
        shown = sums.shown > 0
        if self.family.learns:
            p = np.maximum(table.behavior.valuation(curve).exposure * UNIT, SMALLEST_P)
            own = self.with_state(
                self.rows(table.features, table.behavior, curve, threads, state),
                Valuation.by_slot(p, table.behavior.behaviors),
                state,
            )
            own = replace(own, included=read_only(shown))
            losses[shown] = own.losses_and_slopes(prior.a)[0][shown]
        else:
            places = np.flatnonzero(shown)
            losses[shown] = self.family.marginal_loss(prior.rows(places), sums.rows(places))
        return losses

    def learner_state(self, state: State) -> State | None:
        """Return the learner's part of a state; None if there is none."""
        others = self.other_arrays
        own = {name: values for name, values in state.items() if name not in others}
        return own or None

    def curve(self, state: State | None, examination: Examination) -> Examination:
        """Return how far down users look: as learned, otherwise as configured."""
        if state is None or "examination" not in state:
            return examination
        return fitting.by_slot(state["examination"], examination)

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
            evidence=read_only(self.estimator.matrix(behavior, sums, clamp=self.choices.clamp)),
            included=read_only(sums.shown > self.choices.min_impressions),
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

    def _parameters(self, valuation: Valuation, state: State | None) -> Floats:
        """Return the parameters of the loss, followed by what was learned."""
        return read_only(self._bound(self._loss, self.family.learned(state, valuation)).parameters)

    @property
    def _loss(self) -> Formula:
        family: Any = type(self.family)
        return loss_formula(family, self.choices.estimator)

    def prior(
        self,
        state: State | None,
        features: Features,
        threads: int | None = None,
        earned: Elsewhere | None = None,
    ) -> ItemPrior:
        """Return the prior of items from their features, and what they earned elsewhere.

        Without a state, all are the same.
        """
        scores = self.prior_scores(state, features, threads)
        prior = self.family.prior(scores if earned is None else scores + earned.effect)
        fits = len(prior.a) == len(scores) and len(prior.b) in (1, len(scores))
        require(
            fits, f"the family {self.family.name} gives no prior for each of {len(scores)} rows"
        )
        return prior

    def prior_scores(
        self, state: State | None, features: Features, threads: int | None = None
    ) -> Floats:
        """Return the learner's score of each row."""
        matrix = _matrix(features)
        own = None if state is None else self.learner_state(state)
        if own is None:
            return np.zeros(len(matrix))
        # Kernels read scores by pointer, and a learner may return a view with gaps.
        return np.ascontiguousarray(self.learner.scores(own, matrix, threads), dtype=np.float64)


def parse(text: str) -> Policy:
    """Return the policy that a text such as `ebrank:epsilon=20` names."""
    name, _, settings = text.partition(":")
    return make(name, **read(name, settings))


def read(name: str, settings: str, also: Iterable[Parameter] = ()) -> dict[str, Any]:
    """Return the values that a text such as `epsilon=20` gives a policy's parameters.

    `also` lists parameters that the text may set in addition to the policy's own.
    """
    differences = _preset(name).differences

    def parameters(texts: Mapping[str, str]) -> dict[str, Parameter]:
        named = {kind: texts[kind] for kind in PARTS if texts.get(kind)}
        kinds: tuple[type, ...] = (
            Choices,
            *_parts(_made(Choices, {**differences, **named}, name)),
        )
        own = (parameter for kind in kinds for parameter in declared(kind))
        return {parameter.name: parameter for parameter in (*own, *also)}

    return read_settings(settings, name, parameters)


def make(name: str = "ebrank", **values: Any) -> Policy:  # noqa: ANN401 (of any type)
    """Return a policy with these parameters, and the preset's values for the rest.

    >>> str(make("ebrank", bonus="none"))
    'ebrank:bonus=none'
    """
    given = {**_preset(name).differences, **values}
    choices = _made(Choices, given, name)
    parts = [_made(kind, given, name) for kind in _parts(choices)]
    if given:
        names = [p.name for part in (choices, *parts) for p in declared(type(part))]
        unknown = min(given)
        raise ParameterError(f"{name} has no parameter {unknown!r}{near(unknown, names)}")
    policy = Policy(name, choices, *parts)  # type: ignore[arg-type]
    _check(policy)
    return policy


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise ParameterError(f"unknown policy {name!r}{near(name, list(PRESETS))}")
    return PRESETS[name]


def _made(kind: type[P], given: dict[str, Any], owner: str) -> P:
    """Return a part with its parameters, and remove these from `given`."""
    own = {p.name: p.check(given.pop(p.name), owner) for p in declared(kind) if p.name in given}
    return kind(**own)


def _parts(choices: Choices) -> tuple[type[Configured], ...]:
    """Return the classes of a policy's parts."""
    return (
        find(Family, "ebrank.model.prior.families", choices.family),
        find(Learner, "ebrank.model.prior.learners", choices.learner),
        find(Bonus, "ebrank.model.bonus", choices.bonus),
    )


def find(base: type[P], package: str, name: str) -> type[P]:
    """Return a part by its file's name, by that of an addon, or by `module:Class`."""
    if ":" in name:
        return load_class(name, base)
    module = importlib.import_module(ADDONS.get(name, f"{package}.{name}"))
    return next(
        part
        for part in vars(module).values()
        if isinstance(part, type) and issubclass(part, base) and part.__module__ == module.__name__
    )


def _check(policy: Policy) -> None:
    """Raise if parts do not fit together."""
    names = [parameter.name for part in policy.parts for parameter in declared(type(part))]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{policy.name}: two parts have a parameter {name!r}; rename one")
    family: Any = type(policy.family)
    estimator = policy.choices.estimator
    if estimator not in family.posteriors:
        raise ParameterError(
            f"{policy.name}: the family {family.name} does not support {estimator!r} evidence; "
            f"it supports {', '.join(family.posteriors)}"
        )
    if policy.learns_examination and not family.learns:
        raise ParameterError(
            f"{policy.name}: the family {family.name} cannot learn the examination; shape can"
        )
    if policy.shares and family.item != ("score",):
        raise ParameterError(
            f"{policy.name}: the family {family.name} cannot share evidence between queries; "
            "shape can"
        )
    bonus: Any = type(policy.bonus)
    loss_formula(family, estimator).check()  # are all names explained?
    try:
        score_formula(family, bonus, estimator, policy.choices.part).check()
    except ParameterError as problem:
        raise ParameterError(
            f"{policy.name}: the bonus {bonus.name} does not go with the family {family.name} and "
            f"{estimator!r} evidence; choose another bonus ({problem})"
        ) from None


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
