"""A policy: how items are scored, put together from four parts that each have one home.

| part | question | built in |
|---|---|---|
| family (`ebrank.priors.families`) | how is relevance distributed? | `beta` |
| learner (`ebrank.priors.learners`) | what do features say? | `linear` |
| estimator (`ebrank.evidence.estimators`) | how do counts speak? | `ips`, `exposure`, `exact` |
| bonus (`ebrank.bonus`) | what is exploring worth? | `marginal_certainty`, `none`, `draw` |

A policy has a text form, which the lab, `EBRanker` and the service share:

>>> policy = parse("ebrank:epsilon=5,estimator=exposure")
>>> policy.bonus
MarginalCertainty(epsilon=5.0)
>>> str(policy)
'ebrank:epsilon=5,estimator=exposure'

A part of your own goes by its class: `ebrank:bonus=mymodule:MyBonus,width=2`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from ebrank.arrays import read_only
from ebrank.bonus import Bonus
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.estimators import ESTIMATORS, Estimator
from ebrank.formula import COUNTS_LOSS, MODEL, SUMS_LOSS, Formula, Score, Source
from ebrank.parameters import (
    Configured,
    Parameter,
    declared,
    near,
    param,
    read_settings,
    to_text,
)
from ebrank.plugins import load_class
from ebrank.priors.base import Family, ItemPrior, Learner, State
from ebrank.priors.rows import Rows
from ebrank.typing import Features, Floats


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
}

PARTS = ("family", "learner", "bonus")

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
    family: str = param("beta", "distribution of relevance", choices=("beta",), open=True)
    learner: str = param("linear", "model of the features", choices=("linear",), open=True)
    bonus: str = param(
        "marginal_certainty",
        "what exploring is worth",
        choices=("marginal_certainty", "none", "draw"),
        open=True,
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
    """How items are scored; make one by `parse` or `make`.

    Attributes:
        name: of the preset it started from.
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
        """All that has parameters."""
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

        A part that is replaced takes its parameters with it.
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
        """Pickle by the text: what is compiled stays behind."""
        return parse, (str(self),)

    # --- scores --------------------------------------------------------------------------------

    @property
    def estimator(self) -> Estimator:
        """The kind of evidence."""
        return ESTIMATORS[self.choices.estimator]

    @property
    def noisy(self) -> bool:
        """Whether every list draws new scores."""
        return self.bonus.noisy and self.choices.part == "both"

    @cached_property
    def relevance(self) -> Score:
        """R̂, the score without exploration."""
        return self._score(None)

    @cached_property
    def score(self) -> Score:
        """The score that lists are sorted by: R̂ plus the bonus."""
        return self._score(type(self.bonus))

    def _score(self, bonus: Any) -> Score:  # noqa: ANN401 (a class)
        family: Any = type(self.family)
        return self._bound(_score_formula(family, bonus, self.choices.estimator, self.choices.part))

    def _bound(self, formula: Formula) -> Score:
        values = self.values()
        return formula.bind(**{name: float(values[name]) for name in formula.parameters})

    # --- learning ------------------------------------------------------------------------------

    def rows(
        self,
        features: Features,
        behavior: BehaviorStats,
        examination: Examination,
        threads: int | None = None,
    ) -> Rows:
        """Return the rows to fit the learner on, with the family's loss."""
        if len(features) != len(behavior):
            raise ParameterError(f"{len(features)} rows of features, behavior of {len(behavior)}")
        sums = behavior.sums(examination, threads=threads)
        valuation = behavior.valuation(examination)
        family: Any = type(self.family)
        loss = _loss_formula(family, self.choices.estimator)
        return Rows(
            features=read_only(_matrix(features)),
            evidence=read_only(self.estimator.matrix(behavior, sums, clamp=self.choices.clamp)),
            included=read_only(sums.shown > self.choices.min_impressions),
            loss=loss.compiled,
            table=valuation.table,
            slots=valuation.slots,
            behaviors=valuation.behaviors,
            parameters=read_only(self._bound(loss).parameters),
            threads=threads,
        )

    def prior(
        self, state: State | None, features: Features, threads: int | None = None
    ) -> ItemPrior:
        """Return the prior of items from their features; without a state, all are alike."""
        matrix = _matrix(features)
        if state is None:
            return self.family.prior(np.zeros(len(matrix)))
        return self.family.prior(self.learner.scores(state, matrix, threads))

    def prior_mean(self, prior: ItemPrior) -> Floats:
        """Return the relevance that the features alone promise."""
        family: Any = type(self.family)
        formula = _score_formula(family, None, self.choices.estimator, "prior")
        mean: Floats = formula(a=prior.a, b=prior.b, **self.values())
        return mean


def parse(text: str) -> Policy:
    """Return the policy that a text such as `ebrank:epsilon=20` names."""
    name, _, settings = text.partition(":")
    differences = _preset(name).differences

    def parameters(texts: Mapping[str, str]) -> dict[str, Parameter]:
        named = {kind: texts[kind] for kind in PARTS if texts.get(kind)}
        kinds: tuple[type, ...] = (
            Choices,
            *_parts(_made(Choices, {**differences, **named}, name)),
        )
        return {parameter.name: parameter for kind in kinds for parameter in declared(kind)}

    return make(name, **read_settings(settings, name, parameters))


def make(name: str = "ebrank", **values: Any) -> Policy:  # noqa: ANN401 (of any type)
    """Return a policy with these parameters, the rest as the preset has them.

    >>> str(make("ebrank", bonus="none"))
    'ebrank:bonus=none'
    """
    given = {**_preset(name).differences, **values}
    choices = _made(Choices, given, name)
    parts = [_made(kind, given, name) for kind in _parts(choices)]
    if given:
        known = [p.name for part in (choices, *parts) for p in declared(type(part))]
        unknown = min(given)
        raise ParameterError(f"{name} has no parameter {unknown!r}{near(unknown, known)}")
    policy = Policy(name, choices, *parts)  # type: ignore[arg-type]
    _check(policy)
    return policy


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise ParameterError(f"no policy is called {name!r}{near(name, list(PRESETS))}")
    return PRESETS[name]


def _made(kind: type[P], given: dict[str, Any], owner: str) -> P:
    """Return a part with its parameters, which are taken out of all that were given."""
    own = {p.name: p.check(given.pop(p.name), owner) for p in declared(kind) if p.name in given}
    return kind(**own)


def _parts(choices: Choices) -> tuple[type[Configured], ...]:
    """Return the classes of a policy's parts."""
    return (
        find(Family, "ebrank.priors.families", choices.family),
        find(Learner, "ebrank.priors.learners", choices.learner),
        find(Bonus, "ebrank.bonus", choices.bonus),
    )


def find(base: type[P], package: str, name: str) -> type[P]:
    """Return a part by its name, which is that of its file, or by `module:Class`."""
    if ":" in name:
        return load_class(name, base)
    module = importlib.import_module(f"{package}.{name}")
    return next(
        part
        for part in vars(module).values()
        if isinstance(part, type) and issubclass(part, base) and part.__module__ == module.__name__
    )


def _check(policy: Policy) -> None:
    """Refuse parts that do not fit together."""
    names = [parameter.name for part in policy.parts for parameter in declared(type(part))]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{policy.name}: two parts have a parameter {name!r}; rename one")
    family: Any = type(policy.family)
    estimator = policy.choices.estimator
    if estimator not in family.posteriors:
        raise ParameterError(
            f"{policy.name}: the family {family.name} does not take {estimator!r} evidence; "
            f"it takes {', '.join(family.posteriors)}"
        )
    policy.score.formula.check()  # raises where a bonus names what the family does not have
    _loss_formula(family, estimator).check()


@cache
def _score_formula(family: Any, bonus: Any, estimator: str, part: str) -> Formula:  # noqa: ANN401 (classes)
    """Return the formula of these parts; one object for all policies made of the same."""
    item: dict[str, Source] = dict(zip(family.item, MODEL, strict=False))
    quantities: dict[str, Source] = dict(ESTIMATORS[estimator].quantities)
    own = tuple(name for name in _numbers(family) if name not in item)
    if part == "prior":
        return Formula(family.mean, *own, given=item)
    if part == "behavior":
        return Formula(_rate, given=quantities)
    posterior = family.posteriors[estimator]
    given = {
        **item,
        **quantities,
        "relevance": posterior.relevance,
        "spread": posterior.spread,
        "draw": posterior.draw,
    }
    if bonus is None:
        return Formula(_as_it_is, *own, given=given)
    return Formula(_total, *own, *_numbers(bonus), given={**given, "bonus": bonus.value})


@cache
def _loss_formula(family: Any, estimator: str) -> Formula:  # noqa: ANN401 (a class)
    """Return the formula of a family's loss."""
    frame = COUNTS_LOSS if ESTIMATORS[estimator].by_rank else SUMS_LOSS
    return Formula(family.posteriors[estimator].loss, *_numbers(family), frame=frame)


def _numbers(part: type[Configured]) -> tuple[str, ...]:
    """Return the parameters of a part that its functions may name."""
    return tuple(p.name for p in declared(part) if p.kind is not str and p.default is not None)


def _as_it_is(relevance: float) -> float:
    """Return the relevance."""
    return relevance


def _total(relevance: float, bonus: float) -> float:
    """Return relevance plus bonus (eq:sortRankingscore)."""
    return relevance + bonus


def _rate(hits: float, trials: float) -> float:
    """Return what users alone say; 0 for what nobody has seen."""
    return hits / trials if trials > 0.0 else 0.0


def _matrix(features: Any) -> Features:  # noqa: ANN401 (anything like an array)
    """Return features as a row-major float32 matrix; one that is so already is not copied."""
    matrix = np.ascontiguousarray(features, dtype=np.float32)
    if matrix.ndim != 2:
        raise ParameterError(f"features must be a matrix (rows, features), not {matrix.ndim}-d")
    return matrix
