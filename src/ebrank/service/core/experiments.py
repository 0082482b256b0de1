"""Experiments: which arm makes a list, and sums over the lists of each arm.

An arm is a policy, or `own`: the caller's own order, a control group whose clicks count. Arms are
drawn per query unless you say otherwise, since a split of users lets the control profit from what
the treatment finds. A hash puts every unit, a query or a user, into one of 16,384 cells, and cells
belong to arms; so a unit stays in its arm, on every server, and a change of shares moves no more
cells than it must:

>>> before = dealt([""] * CELLS, {"a": 0.1, "b": 0.1})
>>> after = dealt(before, {"a": 0.5, "b": 0.5})
>>> sum(old != new for old, new in zip(before, after) if old), after.count("a") / CELLS
(0, 0.5)

Sums are kept per cell: cells were randomized, so cells are what an interval may count. A change of
arms or shares begins another stretch with sums of its own.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import xxhash
from msgspec import Struct, structs

from ebrank.errors import EBRankError
from ebrank.model.policy import policies
from ebrank.service import api
from ebrank.service.core.problems import NotFound, Problem
from ebrank.service.store.records import RankingEntry

EXPERIMENTS = "experiments"
"""The setting of the store that holds all experiments, as JSON."""
OWN = "own"
CELLS = 2**14
MOST_EXPERIMENTS, MOST_STRETCHES = 200, 200
Unit: TypeAlias = Literal["query", "user"]
ArmCell: TypeAlias = tuple[str, int, str, int]
"""An experiment, the number of a stretch, an arm, and a cell: whose lists are added up."""


class Stretch(Struct, frozen=True):
    """A time in which neither arms nor shares changed.

    Attributes:
        since: when it began, in seconds since 1970.
        arms: the policy of each arm, or `own`.
        shares: of the traffic.
        runs: arms of cells in sequence, each with how many; "" for cells of none.
    """

    since: float
    arms: dict[str, str]
    shares: dict[str, float]
    runs: list[tuple[str, int]]

    @property
    def cells(self) -> list[str]:
        """The arm of each cell."""
        return [arm for arm, count in self.runs for _ in range(count)]

    def comparable(self, other: Stretch) -> bool:
        """Return whether sums of both may be added: the same arms, with shares in proportion.

        If proportions changed, arms would differ by when their lists were made.
        """
        own, theirs = sum(self.shares.values()), sum(other.shares.values())
        return self.arms == other.arms and all(
            abs(share / own - other.shares[arm] / theirs) < 1e-6
            for arm, share in self.shares.items()
        )


class Experiment(Struct, frozen=True):
    """An experiment; running unless it has `ended`.

    Arms per query keep apart what their queries say about items that they have in common. Arms per
    user list the same queries, whose evidence is one.
    """

    name: str
    unit: Unit
    stretches: list[Stretch]
    ended: float | None = None

    @property
    def stretch(self) -> Stretch:
        """The latest one."""
        return self.stretches[-1]

    def comparable(self) -> list[int]:
        """Return the numbers of stretches that may be compared with the latest, itself included."""
        pairs = enumerate(self.stretches, 1)
        return [number for number, stretch in pairs if stretch.comparable(self.stretch)]


class Assignment(NamedTuple):
    """The arm of a list: as it is logged, in parts, and the cell of its unit."""

    label: str
    experiment: str
    arm: str
    policy: str
    cell: int


class Assigner:
    """Assigns the lists of a running experiment to arms.

    Attributes:
        experiment: the one that runs.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        salt = f"{experiment.name} {experiment.stretches[0].since!r}"
        self._seed = xxhash.xxh3_64_intdigest(salt.encode())
        self._cells = experiment.stretch.cells
        number = len(experiment.stretches)
        self._suffix = "" if number == 1 else f":{number}"
        self._needs_items = OWN in experiment.stretch.arms.values()

    def of_query(self, query: str) -> str:
        """Return the arm of a query, "" if it has none, or its lists may be of any."""
        return self._cells[self._cell(query)] if self.experiment.unit == "query" else ""

    def assigned(self, request: api.RankRequest, query: str, user: str | None) -> Assignment | None:
        """Return the arm of a request, None if it does not take part."""
        experiment = self.experiment
        if self._needs_items and request.items is None:
            return None  # in no arm, or arms would differ by who sends items
        unit = query if experiment.unit == "query" else user
        if unit is None:
            return None
        cell = self._cell(unit)
        arm = self._cells[cell]
        if not arm:
            return None
        label, policy = f"{experiment.name}:{arm}{self._suffix}", experiment.stretch.arms[arm]
        return Assignment(label, experiment.name, arm, policy, cell)

    def _cell(self, unit: str) -> int:
        return xxhash.xxh3_64_intdigest(unit.encode("utf-8", "surrogatepass"), self._seed) % CELLS

    def runs(self, label: str) -> bool:
        """Return whether a list of an arm, given as it is logged, is of this experiment."""
        return label.startswith(f"{self.experiment.name}:")

    def cell_of(self, entry: RankingEntry) -> int:
        """Return the cell of a list that was read from the log."""
        user = entry.user if self.experiment.unit == "user" else None
        return self._cell(user or entry.query)


def parted(label: str) -> tuple[str, str, int]:
    """Return the experiment, arm and stretch of a list, given as they are logged.

    >>> parted("bonus:a"), parted("bonus:a:2")
    (('bonus', 'a', 1), ('bonus', 'a', 2))
    """
    experiment, arm, *number = label.split(":")
    return experiment, arm, int(number[0]) if number else 1


def policy_of(label: str, experiments: Mapping[str, Experiment]) -> str:
    """Return the policy of a list's arm, given as it is logged; empty if that is unknown here."""
    name, arm, stretch = parted(label)
    stretches = experiments[name].stretches if name in experiments else []
    return stretches[stretch - 1].arms.get(arm, "") if stretch <= len(stretches) else ""


# --- starting, changing and stopping -------------------------------------------------------------


def read(text: str | None) -> dict[str, Experiment]:
    """Return the experiments of a store by their names, in the order in which they began.

    Those with a unit that only another version knows are left out.
    """
    experiments = dict[str, Experiment]()
    for name, kept in msgspec.json.decode(text or "{}", type=dict[str, msgspec.Raw]).items():
        with suppress(msgspec.ValidationError):
            experiments[name] = msgspec.json.decode(kept, type=Experiment)
    return experiments


def running(experiments: Mapping[str, Experiment]) -> Experiment | None:
    """Return the one that runs."""
    return next((each for each in experiments.values() if each.ended is None), None)


def started(text: str, request: api.StartExperimentRequest, now: float) -> str:
    """Return the setting with another experiment."""
    experiments, name = read(text), request.name
    if name in experiments:
        raise Problem(f"there is an experiment {name!r} already. Choose another name", "name")
    other = running(experiments)
    if other is not None:
        raise Problem(f"experiment {other.name!r} is running. Stop it first", "name")
    if len(experiments) >= MOST_EXPERIMENTS:
        raise Problem(f"a store keeps {MOST_EXPERIMENTS} experiments. Copy it to a new one", "name")
    shares = request.shares or dict.fromkeys(request.arms, 1.0 / len(request.arms))
    stretch = _stretch(request.arms, shares, [""] * CELLS, now)
    made = Experiment(name, request.unit, [stretch])
    return _text(experiments | {name: made})


def changed(text: str, name: str, request: api.ChangeExperimentRequest, now: float) -> str:
    """Return the setting with other shares or policies of a running experiment."""
    experiments = read(text)
    experiment = _running(experiments, name)
    last = experiment.stretch
    arms = last.arms if request.arms is None else request.arms
    if set(arms) != set(last.arms):
        raise Problem(f"arms keep their names: {', '.join(last.arms)}", "arms")
    arms = {arm: arms[arm] for arm in last.arms}
    shares = request.shares or last.shares
    if (arms, shares) == (last.arms, last.shares):
        return text
    if len(experiment.stretches) >= MOST_STRETCHES:
        raise Problem(f"{name!r} was changed {MOST_STRETCHES - 1} times. Start another one", "name")
    stretch = _stretch(arms, shares, last.cells, now)
    stretches = [*experiment.stretches, stretch]
    return _text(experiments | {name: structs.replace(experiment, stretches=stretches)})


def stopped(text: str, name: str, now: float) -> str:
    """Return the setting with an experiment ended."""
    experiments = read(text)
    experiment = _running(experiments, name)
    return _text(experiments | {name: structs.replace(experiment, ended=now)})


def named(experiments: Mapping[str, Experiment], name: str) -> Experiment:
    """Return an experiment; raise if there is none."""
    if name not in experiments:
        known = f": there are {', '.join(experiments)}" if experiments else ""
        raise NotFound(f"there is no experiment {name!r}{known}", "name")
    return experiments[name]


def _running(experiments: Mapping[str, Experiment], name: str) -> Experiment:
    experiment = named(experiments, name)
    if experiment.ended is not None:
        raise Problem(f"experiment {name!r} has ended. Start another one", "name")
    return experiment


def _text(experiments: Mapping[str, Experiment]) -> str:
    return msgspec.json.encode(experiments).decode()


def _stretch(
    arms: Mapping[str, str], shares: Mapping[str, float], before: list[str], now: float
) -> Stretch:
    for arm, policy in arms.items():
        if ":" in policy.partition(":")[2]:  # no request may import a module
            raise Problem(f"arm {arm}: parts of your own belong into ranking.policy", "arms")
        try:
            policies.parse("auto" if policy == OWN else policy)
        except EBRankError as problem:
            raise Problem(f"arm {arm}: {problem}", "arms") from None
    if set(shares) != set(arms):
        raise Problem(f"give a share for each arm: {', '.join(arms)}", "shares")
    if sum(shares.values()) > 1.0 + 1e-9:
        raise Problem("shares must be at most 1 together", "shares")
    if len(arms) == 1 and (OWN not in arms.values() or min(shares.values()) < 1.0):
        alone = "only `own` makes sense alone, for all traffic"
        raise Problem(f"an arm alone is compared with nothing: {alone}", "arms")
    cells = dealt(before, shares)
    runs = [(arm, sum(1 for _ in run)) for arm, run in itertools.groupby(cells)]
    return Stretch(now, dict(arms), {arm: shares[arm] for arm in arms}, runs)


def dealt(cells: Sequence[str], shares: Mapping[str, float]) -> list[str]:
    """Return cells after a change of shares: an arm that shrinks gives some up, others take those.

    No other cell changes its arm.
    """
    wanted, kept = {arm: round(share * CELLS) for arm, share in shares.items()}, Counter[str]()
    after = list[str]()
    for arm in cells:
        stays = kept[arm] < wanted.get(arm, 0)
        kept[arm] += stays
        after.append(arm if stays else "")
    free = (cell for cell, arm in enumerate(after) if not arm)
    takers = [arm for arm, number in wanted.items() for _ in range(number - kept[arm])]
    for cell, arm in zip(list(free), takers, strict=False):
        after[cell] = arm
    return after
