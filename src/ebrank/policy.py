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
'ebrank:estimator=exposure,epsilon=5'

A part of your own goes by its class: `ebrank:bonus=mymodule:MyBonus,width=2`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from ebrank.arrays import read_only
from ebrank.bonus import Bonus
from ebrank.errors import ParameterError
from ebrank.evidence import BehaviorStats, Examination
from ebrank.evidence.estimators import ESTIMATORS, Estimator
from ebrank.formula import COUNTS_LOSS, SUMS_LOSS, Formula, Score, Source
from ebrank.parameters import Configured, Parameter, declared, param, typed
from ebrank.plugins import load_class
from ebrank.priors.base import Family, ItemPrior, Learner, Posterior, State
from ebrank.priors.rows import Rows
from ebrank.typing import Features

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "ebrank": (
        "Posterior relevance from an empirical Bayes prior, plus a bonus for marginal certainty.",
        {},
    ),
    "thompson": (
        "Thompson sampling: sort by a draw from EBRank's posterior.",
        {"estimator": "exposure", "bonus": "draw"},
    ),
}
"""Policies with a name: what they do, and where they differ from `ebrank`."""

FAMILIES = ("beta",)
LEARNERS = ("linear",)
BONUSES = ("marginal_certainty", "none", "draw")

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
    family: str = param("beta", "distribution of relevance", choices=FAMILIES, open=True)
    learner: str = param("linear", "model of the features", choices=LEARNERS, open=True)
    bonus: str = param(
        "marginal_certainty",
        "what exploring is worth",
        choices=BONUSES,
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
        return PRESETS[self.name][0]

    @property
    def parts(self) -> tuple[Configured, ...]:
        """All that has parameters."""
        return (self.choices, self.bonus, self.family, self.learner)

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters of all parts, with the defaults of the preset."""
        defaults = PRESETS[self.name][1]
        for part in self.parts:
            for parameter in declared(type(part)):
                default = defaults.get(parameter.name, parameter.default)
                yield Parameter(**{**vars(parameter), "default": default})

    def values(self) -> dict[str, Any]:
        """Return the value of every parameter."""
        return {f.name: getattr(part, f.name) for part in self.parts for f in fields(part)}  # type: ignore[arg-type]

    def with_parameters(self, **changes: Any) -> Policy:  # noqa: ANN401 (of any type)
        """Return the same policy with some parameters changed.

        A part that is replaced takes its parameters with it.
        """
        replaced = [
            getattr(self, kind)
            for kind in ("family", "learner", "bonus")
            if changes.get(kind, getattr(self.choices, kind)) != getattr(self.choices, kind)
        ]
        gone = {parameter.name for part in replaced for parameter in declared(type(part))}
        kept = {name: value for name, value in self.values().items() if name not in gone}
        return make(self.name, **kept | changes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the text: what is compiled stays behind."""
        return parse, (str(self),)

    def __str__(self) -> str:
        """Return the text that `parse` reads back, with parameters not at their default."""
        values = self.values()
        changed = [
            f"{parameter.name}={typed(values[parameter.name])}"
            for parameter in self.parameters()
            if values[parameter.name] != parameter.default
        ]
        return ":".join([self.name, ",".join(changed)]) if changed else self.name

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
        return self._score(type(self.family), None)

    @cached_property
    def score(self) -> Score:
        """The score that lists are sorted by: R̂ plus the bonus."""
        return self._score(type(self.family), type(self.bonus))

    def _score(self, family: Any, bonus: Any) -> Score:  # noqa: ANN401 (classes)
        return self._bound(_formulas(family, bonus, self.choices.estimator, self.choices.part))

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
        loss = _loss(family, self.choices.estimator)
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


def parse(text: str) -> Policy:
    """Return the policy that a text such as `ebrank:epsilon=20` names."""
    name, _, settings = text.partition(":")
    if name not in PRESETS:
        raise ParameterError(f"no policy is called {name!r}{near(name, list(PRESETS))}")
    return make(
        name, **read_settings(settings, name, lambda given: _policy_parameters(name, given))
    )


def make(name: str = "ebrank", **values: Any) -> Policy:  # noqa: ANN401 (of any type)
    """Return a policy with these parameters, the rest as the preset has them.

    >>> str(make("ebrank", bonus="none"))
    'ebrank:bonus=none'
    """
    if name not in PRESETS:
        raise ParameterError(f"no policy is called {name!r}{near(name, list(PRESETS))}")
    given = PRESETS[name][1] | values
    choices = Choices(**_taken(given, Choices))  # refuses names that no part has
    parts = [
        kind(**_taken(given, kind))
        for kind in _parts(choices.family, choices.learner, choices.bonus)
    ]
    if given:
        known = [p.name for part in (choices, *parts) for p in declared(type(part))]
        unknown = min(given)
        raise ParameterError(f"{name} has no parameter {unknown!r}{near(unknown, known)}")
    policy = Policy(name, choices, *parts)  # type: ignore[arg-type]
    _check(policy)
    return policy


def read_settings(
    text: str, owner: str, known: Callable[[Mapping[str, str]], Mapping[str, Parameter]]
) -> dict[str, Any]:
    """Return the values that a text such as `epsilon=20,estimator=exposure` gives parameters.

    `known` returns the parameters, which may depend on the texts given: a part has its own.
    """
    texts: dict[str, str] = {}
    for setting in filter(None, text.split(",")):
        key, equals, value = setting.partition("=")
        if key in texts:
            raise ParameterError(f"{owner}: {key} is given twice")
        texts[key] = value if equals else ""
    parameters = known(texts)
    values = {}
    for key, value in texts.items():
        if key not in parameters:
            raise ParameterError(f"{owner} has no parameter {key!r}{near(key, list(parameters))}")
        if not value:
            example = f"{key}={typed(parameters[key].default)}"
            raise ParameterError(f"{owner}: {key} needs a value, as in {example}")
        values[key] = parameters[key].read(value)
    return values


def near(name: str, names: list[str]) -> str:
    """Return a hint at what a mistyped name may mean."""
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"{hint} Known: {', '.join(names)}." if names else "; it has none."


def _policy_parameters(name: str, given: Mapping[str, str]) -> dict[str, Parameter]:
    preset = PRESETS[name][1]
    defaults: dict[str, Any] = {p.name: p.default for p in declared(Choices)} | preset
    chosen = {kind: given.get(kind) or defaults[kind] for kind in ("family", "learner", "bonus")}
    Choices(**chosen)  # type: ignore[arg-type]  # refuses names that no part has
    owners: tuple[type, ...] = (Choices, *_parts(**chosen))
    return {parameter.name: parameter for owner in owners for parameter in declared(owner)}


def _parts(family: str, learner: str, bonus: str) -> tuple[type[Configured], ...]:
    """Return the classes of a policy's parts."""
    return (
        find(Family, "ebrank.priors.families", family),
        find(Learner, "ebrank.priors.learners", learner),
        find(Bonus, "ebrank.bonus", bonus),
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


def _taken(given: dict[str, Any], owner: type) -> dict[str, Any]:
    """Take the values of an owner's parameters out of all that were given."""
    return {f.name: given.pop(f.name) for f in fields(owner) if f.name in given}


def _check(policy: Policy) -> None:
    """Refuse parts that do not fit together."""
    names = [parameter.name for part in policy.parts for parameter in declared(type(part))]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{policy.name}: two parts have a parameter {name!r}; rename one")
    if policy.choices.estimator not in policy.family.posteriors:
        raise ParameterError(
            f"the family {policy.family.name} does not take {policy.choices.estimator!r} evidence; "
            f"it takes {', '.join(policy.family.posteriors)}"
        )
    policy.score.formula.check()  # raises where a bonus names what the family does not have
    family: Any = type(policy.family)
    _loss(family, policy.choices.estimator).check()


@cache
def _formulas(family: Any, bonus: Any, estimator: str, part: str) -> Formula:  # noqa: ANN401 (classes)
    """Return the formula of these parts; one object for all policies made of the same."""
    posterior: Posterior = family.posteriors[estimator]
    given: dict[str, Source] = {
        **dict(zip(family.item, ("a", "b"), strict=False)),
        **ESTIMATORS[estimator].quantities,
        "relevance": posterior.relevance,
        "spread": posterior.spread,
        "draw": posterior.draw,
    }
    if part == "prior":
        unseen = {"relevance": _by_sums(family).relevance, "hits": 0.0, "trials": 0.0}
        return Formula(_as_it_is, given=given | unseen)
    if part == "behavior":
        behavior = {"hits": "clicks", "trials": "exposure"} | dict(ESTIMATORS[estimator].quantities)
        return Formula(_rate, given=behavior)
    if bonus is None:
        return Formula(_as_it_is, given=given)
    names = tuple(f.name for f in fields(bonus))
    return Formula(_total, *names, given=given | {"bonus": bonus.value})


def _by_sums(family: Any) -> Posterior:  # noqa: ANN401 (a class)
    """Return a posterior by hits of trials, which gives the prior where both are 0."""
    posteriors: Mapping[str, Posterior] = family.posteriors
    for name, posterior in posteriors.items():
        if ESTIMATORS[name].hits:
            return posterior
    raise ParameterError(
        f"the family {family.name} reads counts only: it cannot rank by the prior's part"
    )


@cache
def _loss(family: Any, estimator: str) -> Formula:  # noqa: ANN401 (a class)
    posterior = family.posteriors[estimator]
    frame = SUMS_LOSS if ESTIMATORS[estimator].hits else COUNTS_LOSS
    return Formula(posterior.loss, *(f.name for f in fields(family)), frame=frame)


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
