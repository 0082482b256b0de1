"""What a ranker is, declared once: its name, its parameters, what it learns.

A ranker is a frozen dataclass whose fields are its parameters; it makes a learner for each trial.
To add one, write one file, in this folder or your own: `docs/rankers.md` shows how.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from ebrank.behavior import BehaviorStats
from ebrank.data.dataset import Dataset
from ebrank.errors import ParameterError
from ebrank.rankers.model import ScoreModel

Setting: TypeAlias = Literal["none", "concate", "non-concate"]

REGISTRY: dict[str, type[Ranker]] = {}
"""ebrank's own rankers; those from elsewhere go by the path of their class."""


@dataclass(frozen=True, eq=False)
class Trial:
    """What a learner may know when a trial begins.

    Attributes:
        dataset: the prepared dataset; features are prior knowledge, labels are for oracles only.
        relevance: true relevance probability of each row, for oracles only.
        stats: behavior so far, updated in place while sessions are served.
        key: root of this trial's random draws (see `ebrank.streams`).
        threads: cores to use, None for all; never changes a result.
    """

    dataset: Dataset
    relevance: npt.NDArray[np.float64]
    stats: BehaviorStats
    key: np.uint64
    threads: int | None = None


class Learner(Protocol):
    """A ranker at work in one trial."""

    def update(self) -> ScoreModel:
        """Learn from `trial.stats` so far; called before serving and at every model update."""
        ...


class Ranker:
    """Base of all rankers: declares, validates, registers.

    Class attributes:
        name: what the command line calls it.
        help: one sentence that says what it does.
        settings: the paper's feature settings it can run in.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    settings: ClassVar[tuple[Setting, ...]]

    def __init_subclass__(cls) -> None:
        """Enter a ranker of this package in the registry under its name."""
        if cls.__module__.startswith(f"{__package__}."):
            REGISTRY[cls.name] = cls

    def __post_init__(self) -> None:
        """Refuse parameters out of range."""
        for parameter in parameters(type(self)):
            parameter.check(getattr(self, parameter.name), self.name)

    @property
    def setting(self) -> Setting:
        """The feature setting this instance runs in."""
        return getattr(self, "features", self.settings[0])

    @property
    def called(self) -> str:
        """What `registry.parse` knows it by: the name of ebrank's own, else `module:Class`."""
        ours = REGISTRY.get(self.name) is type(self)
        return self.name if ours else path_of(type(self))

    def learner(self, trial: Trial) -> Learner:
        """Return a learner for a new trial."""
        raise TypeError(f"{type(self).__name__} does not say how it learns")

    def __str__(self) -> str:
        """Return the text that `registry.parse` reads back, with parameters not at default."""
        changed = [
            f"{p.name}={str(value).lower() if isinstance(value, bool) else value}"
            for p in parameters(type(self))
            if (value := getattr(self, p.name)) != p.default
        ]
        return ":".join([self.called, ",".join(changed)]) if changed else self.called


def path_of(ranker: type[Ranker]) -> str:
    """Return `module:Class`."""
    return f"{ranker.__module__}:{ranker.__qualname__}"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a ranker: its default, its range, its help, and what `tune` tries."""

    name: str
    default: Any
    help: str
    at_least: float | None
    at_most: float | None
    choices: tuple[str, ...]
    grid: tuple[Any, ...]

    def read(self, text: str) -> Any:  # noqa: ANN401 (of the default's type)
        """Return the value that a text stands for."""
        kind = type(self.default)
        try:
            if kind is bool:
                return {"true": True, "false": False}[text.lower()]
            return kind(text)
        except (KeyError, ValueError):
            raise ParameterError(f"{self.name} takes {self.domain}, not {text!r}") from None

    def check(self, value: object, owner: str) -> None:
        """Raise where a value is outside the domain."""
        if self.choices:
            good = value in self.choices
        elif isinstance(self.default, bool):
            good = isinstance(value, bool)
        else:
            number = isinstance(value, int | float) and not isinstance(value, bool)
            good = number and -np.inf < value < np.inf  # type: ignore[operator]
            good = good and (self.at_least is None or value >= self.at_least)  # type: ignore[operator]
            good = good and (self.at_most is None or value <= self.at_most)  # type: ignore[operator]
            good = good and (isinstance(self.default, float) or isinstance(value, int))
        if not good:
            raise ParameterError(f"{owner}: {self.name} takes {self.domain}, not {value!r}")

    @property
    def domain(self) -> str:
        """What values it takes, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if isinstance(self.default, bool):
            return "true or false"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        match self.at_least, self.at_most:
            case None, None:
                return kind
            case low, None:
                return f"{kind} of {low:g} or more"
            case None, high:
                return f"{kind} of {high:g} or less"
            case low, high:
                return f"{kind} from {low:g} to {high:g}"


def param(
    default: Any,  # noqa: ANN401 (a parameter of any type)
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
    grid: tuple[Any, ...] = (),
) -> Any:  # noqa: ANN401 (stands in for the field's own type)
    """Declare a parameter of a ranker; `grid` is what `ebrank tune` tries unless told otherwise."""
    bounds = {"at_least": at_least, "at_most": at_most}
    about = {"help": help, **bounds, "choices": choices, "grid": grid}
    return dataclasses.field(default=default, metadata=about)


def parameters(ranker: type[Ranker]) -> Iterator[Parameter]:
    """Yield the parameters a ranker declares."""
    for field in dataclasses.fields(ranker):  # type: ignore[arg-type]
        yield Parameter(field.name, field.default, **field.metadata)
