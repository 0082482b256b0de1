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

from ebrank.environment.plugins import load_class
from ebrank.errors import ParameterError
from ebrank.evidence import Valuation
from ebrank.evidence.estimators import ESTIMATORS
from ebrank.model.bonus import Bonus
from ebrank.model.bonus.horizon import USUAL
from ebrank.model.formula import Formula, Score
from ebrank.model.policy.composition import HORIZON, Scores, score_formula
from ebrank.model.prior.base import Family, Learner
from ebrank.model.prior.prior import Prior, loss_formula
from ebrank.parameters import (
    Configured,
    Parameter,
    declared,
    near,
    param,
    read_settings,
    to_text,
)
from ebrank.typing import Floats, State


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
        "evidence from other queries: counts as far as it helps (learned), or not (none)",
        choices=("learned", "none"),
    )
    part: Literal["both", "prior", "behavior"] = param(
        "both",
        "ablation: rank by the prior's or by behavior's part of the estimate alone, unexplored",
        choices=("both", "prior", "behavior"),
    )
    min_impressions: int = param(0, "train on rows shown more often than this", at_least=0)


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

    @cached_property
    def prior(self) -> Prior:
        """Its part that learns."""
        choices = self.choices
        return Prior(
            self.family,
            self.learner,
            ESTIMATORS[choices.estimator],
            learns_examination=choices.examination == "learned",
            shares=choices.shared == "learned",
            min_impressions=choices.min_impressions,
        )

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

    def _bound(self, formula: Formula, learned: Floats, lists: float) -> Score:
        values = self.values()
        if self.plans:
            values[HORIZON] = lists
        return formula.bind(learned, **{name: values[name] for name in formula.parameters})

    @cached_property
    def plans(self) -> bool:
        """Whether its scores depend on how many lists of a query to plan for."""
        return self.values().get(HORIZON, 0.0) is None


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
        kinds: tuple[type, ...] = (Choices, *_parts(_made(Choices, {**differences, **named}, name)))
        of_parts = (parameter for kind in kinds for parameter in declared(kind))
        return {parameter.name: parameter for parameter in (*of_parts, *also)}

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
    values = {p.name: p.check(given.pop(p.name), owner) for p in declared(kind) if p.name in given}
    return kind(**values)


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
    if policy.prior.learns_examination and not family.learns:
        raise ParameterError(
            f"{policy.name}: the family {family.name} cannot learn the examination; shape can"
        )
    if policy.prior.shares and family.item != ("score",):
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
