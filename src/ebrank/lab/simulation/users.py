"""User models: how users go through a list, and the models built into the command line.

A user model says how users go through a list. It sees the whole list at once. For each rank it gets
the probability that users examine it; for the item there, the probability of a click once examined
and of leaving after that click; and one uniform draw per item, this user's mind about it, which is
the same no matter which ranker shows the item. It writes the outcome at each rank: 0 for nothing, 1
for a click, and so on for further behaviors.

| name | how users go through a list |
|---|---|
| `pbm` | examine each rank k with probability p_k (Richardson, Dominowska and Ragno 2007) |
| `cascade` | scan down, leave with probability `stop` after a click (Craswell et al. 2008: 1) |
| `dcm` | scan down, leave after a click with a probability by grade (Guo, Liu and Wang 2009) |
| `dbn` | like `dcm`, and give up at any rank with 1 − `perseverance` (Chapelle and Zhang 2009) |

They click what they examine with probability R, or as a `setting` from the literature says. Your
own users derive from `Users`, and are named `module:Class`:

>>> users = parse("dcm:setting=informational")
>>> print(users, users.habits(2).stop)
dcm:setting=informational [0.1 0.3 0.5]
"""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal, NamedTuple, Protocol

import numpy as np

from ebrank.environment.plugins import load_class, path_of
from ebrank.equations import click_probability, relevance_probability
from ebrank.errors import ParameterError
from ebrank.evidence import Examination
from ebrank.kernels import streams
from ebrank.kernels.compiled import FirstClass
from ebrank.parameters import Configured, declared, named, param, require, to_text
from ebrank.typing import Floats

NOISE = 0.1
"""ε of the paper's R = ε + (1 − ε)(2^y − 1)/(2^y_max − 1)."""
BROWSE = "void(CPointer(f8), CPointer(f8), CPointer(f8), CPointer(f8), i8, u8, CPointer(i1))"
"""Types of a browse function's arguments."""


class UserModel(Protocol):
    """What the simulator needs from a user model.

    Users click what they examine with probability R, the relevance of the paper. A model whose
    users judge grades differently, or leave after a click, also has a method `habits`; one whose R
    of grade 0 is not 0.1 has it as `floor`.
    """

    @property
    def examination(self) -> Examination:
        """How users examine ranks; rankers assume this curve unless configured otherwise."""
        ...

    @property
    def browse(self) -> FirstClass:
        """`f(relevance, stopping, examination, minds, length, key, outcomes)`, see `BROWSE`.

        `relevance` and `stopping` are the `Habits` for the item at each rank. The function writes
        `outcomes[rank]` for each rank below `length`, and reads no others. `key` addresses further
        draws.
        """
        ...


class Habits(NamedTuple):
    """What users do with an item that they examine, by its grade 0, 1, ..., max_label.

    Attributes:
        click: probability of a click.
        stop: probability of leaving after the click.
    """

    click: Floats
    stop: Floats


def habits_of(users: UserModel, max_label: int, relevance: Floats | None = None) -> Habits:
    """Return users' habits on a scale of grades; by default they click with R and never stop.

    `relevance` is R by grade if the dataset has its own; the models here respect it.

    >>> habits_of(PositionBased(), 2).click
    array([0.1, 0.4, 1. ])
    """
    own: Callable[[int], Habits] | None = getattr(users, "habits", None)
    if isinstance(users, Graded):
        own = partial(users.habits, relevance=relevance)
    if own is None:
        return Habits(relevance_of(users, max_label, relevance), np.zeros(max_label + 1))
    habits = Habits(*(np.asarray(values, np.float64) for values in own(max_label)))
    for name, values in habits._asdict().items():
        if values.shape != (max_label + 1,) or not np.all((values >= 0.0) & (values <= 1.0)):
            raise ParameterError(
                f"{users}: habits must hold a probability to {name} for each of the grades "
                f"0 to {max_label}"
            )
    return habits


def relevance_of(users: UserModel, max_label: int, relevance: Floats | None = None) -> Floats:
    """Return R by grade, which lists are measured by; users may have their own R of grade 0.

    >>> relevance_of(PositionBased(), 2)
    array([0.1, 0.4, 1. ])
    """
    floor = getattr(users, "floor", NOISE)
    if relevance is not None:
        require(floor == NOISE, "noise has no effect: this dataset has R of its own; leave it out")
        return relevance
    grades = np.arange(max_label + 1.0)
    return np.minimum(relevance_probability(grades, max_label, floor), 1.0)  # rounding


def position_based(
    relevance: Sequence[float],
    stopping: Sequence[float],
    examination: Sequence[float],
    minds: Sequence[float],
    length: int,
    key: np.uint64,
    outcomes: MutableSequence[int],
) -> None:
    """Click each item with probability p·R, independently of the rest of the list; never leave."""
    for rank in range(length):
        outcomes[rank] = minds[rank] < click_probability(examination[rank], relevance[rank])


POSITION_BASED = FirstClass(position_based, BROWSE)


@dataclass(frozen=True)
class PositionBased:
    """Users who examine rank k with probability p_k and click what they find relevant there.

    These are the paper's users (eq:clickProb, eq:selectionBias), with any curve.
    """

    examination: Examination = field(default_factory=lambda: Examination(cutoff=5))

    browse = POSITION_BASED


# --- by name -------------------------------------------------------------------------------------

Table = tuple[tuple[float, ...], tuple[float, ...]]
"""P(click | grade) and P(stop | click, grade), lowest grade first."""

FIVE: dict[str, Table] = {
    "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
    "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
}
"""For five grades: Hofmann, Schuth, Whiteson and de Rijke (Reusing historical interaction data for
faster online learning to rank for IR, WSDM 2013)."""
THREE: dict[str, Table] = {
    "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
    "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
    "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
}
"""For three: Schuth, Oosterhuis, Whiteson and de Rijke (Multileave gradient descent, WSDM 2016)."""


class Users(Configured):
    """Base of user models that have a text form: frozen dataclasses with parameters.

    A class also has a `name`, a sentence of `help`, `examination` and `browse`, and `habits` if
    needed (see `UserModel`).
    """

    @property
    def examination(self) -> Examination:
        """The curve that rankers assume; the paper's unless a model says otherwise."""
        return Examination(cutoff=5)

    @property
    def browse(self) -> FirstClass:
        """How they go through a list."""
        raise TypeError(f"{type(self).__name__} must define how its users browse")

    def __str__(self) -> str:
        """Return the text that `parse` reads back, with parameters not at default."""
        ours = built_in().get(self.name) is type(self)
        called = self.name if ours else path_of(type(self))
        return to_text(called, declared(type(self)), lambda name: getattr(self, name))


@dataclass(frozen=True)
class Graded(Users):
    """What the four models share: how users judge grades, and how far down they look."""

    setting: Literal["none", "perfect", "navigational", "informational"] = param(
        "none",
        "click and stop probabilities by grade from the literature; none uses R",
        choices=("none", *FIVE),
    )
    noise: float | None = param(
        None,
        f"click probability of irrelevant items: ε of R, {NOISE:g} by default; with a setting, "
        "the share of random clicks, 0 by default",
        at_least=0,
        at_most=1,
        kind=float,
    )
    cutoff: int = param(5, "the last rank users look at", at_least=1)

    @property
    def examination(self) -> Examination:
        """The paper's curve down to the cutoff."""
        return Examination(cutoff=self.cutoff)

    @property
    def floor(self) -> float:
        """ε of R; with a setting, noise is in the clicks alone, and R is the paper's."""
        return NOISE if self.noise is None or self.setting != "none" else self.noise

    def habits(self, max_label: int, relevance: Floats | None = None) -> Habits:
        """Return click and stop probabilities by grade."""
        if self.setting == "none":
            relevance = relevance_of(self, max_label, relevance)
            return Habits(relevance, self.stopping(relevance))
        noise = self.noise or 0.0
        click, stop = probabilities(self.setting, max_label)
        return Habits(noise + (1.0 - noise) * click, self.stopping(stop))

    def stopping(self, stop: Floats) -> Floats:
        """Return the probability of leaving after a click, given R or the setting's own."""
        return stop


def probabilities(setting: str, max_label: int) -> Habits:
    """Return the probabilities of a setting for the grades 0 to `max_label`.

    A perfect user clicks relevant items and reads on. A navigational user looks for one item and
    mostly leaves with it. An informational user clicks a lot and leaves late. Two grades are the
    ends of either table; any other scale is interpolated from the table for five.

    >>> probabilities("navigational", 2).click
    array([0.05, 0.5 , 0.95])
    >>> probabilities("navigational", 8).stop
    array([0.2 , 0.25, 0.3 , 0.4 , 0.5 , 0.6 , 0.7 , 0.8 , 0.9 ])
    """
    table = THREE[setting] if max_label == 2 else FIVE[setting]
    grades = np.linspace(0.0, 1.0, max_label + 1)
    return Habits(*(np.interp(grades, np.linspace(0.0, 1.0, len(row)), row) for row in table))


@dataclass(frozen=True)
class PBM(Graded):
    """The paper's users: they examine each rank or not, independently of the others."""

    name = "pbm"
    help = "Examine each rank with its own probability, independently of the others."

    severity: float = param(1.0, "exponent of the curve 1/log2(rank + 1)", at_least=0)

    @property
    def examination(self) -> Examination:
        """How they examine ranks."""
        return Examination(severity=self.severity, cutoff=self.cutoff)

    browse = POSITION_BASED


@cache
def scan_down(perseverance: float) -> FirstClass:
    """Return how users read a list from the top until they leave or give up."""

    def browse(
        relevance: Sequence[float],
        stopping: Sequence[float],
        examination: Sequence[float],
        minds: Sequence[float],
        length: int,
        key: np.uint64,
        outcomes: MutableSequence[int],
    ) -> None:
        reading = True
        for rank in range(length):
            reading = reading and examination[rank] > 0.0
            clicked = reading and minds[rank] < relevance[rank]
            outcomes[rank] = clicked
            if clicked:
                reading = streams.uniform(streams.child(key, 2 * rank)) >= stopping[rank]
            if perseverance < 1.0:
                patient = streams.uniform(streams.child(key, 2 * rank + 1)) < perseverance
                reading = reading and patient

    return FirstClass(browse, BROWSE)


@dataclass(frozen=True)
class Cascade(Graded):
    """Users who leave after a click with the same probability for every grade."""

    name = "cascade"
    help = "Scan down; after a click, leave with a fixed probability."

    stop: float = param(0.5, "probability of leaving after a click", at_least=0, at_most=1)

    browse = scan_down(1.0)

    def stopping(self, stop: Floats) -> Floats:
        """Return the same for all grades."""
        return np.full(len(stop), self.stop)


@dataclass(frozen=True)
class DCM(Graded):
    """Users who leave once they have what they came for."""

    name = "dcm"
    help = "Scan down; after a click, leave with probability R, or with the setting's."

    browse = scan_down(1.0)


@dataclass(frozen=True)
class DBN(Graded):
    """Users who leave once they have what they came for, or lose patience."""

    name = "dbn"
    help = "Like dcm; after each rank, give up with probability 1 − perseverance."

    perseverance: float = param(
        0.9, "γ: probability of looking at the next rank", at_least=0, at_most=1
    )

    @property
    def browse(self) -> FirstClass:
        """How they go through a list."""
        return scan_down(self.perseverance)


def built_in() -> dict[str, type[Users]]:
    """Return ebrank's own user models by name."""
    models: tuple[type[Users], ...] = (PBM, Cascade, DCM, DBN)
    return {model.name: model for model in models}


def parse(text: str) -> Users:
    """Return the users that a text such as `dbn:perseverance=0.8` or `module:Class` names.

    >>> str(parse("cascade:stop=1,cutoff=10"))
    'cascade:cutoff=10,stop=1'
    """
    return named(text, built_in(), partial(load_class, base=Users), "users are")
