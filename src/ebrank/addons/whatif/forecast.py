"""Policies compared over many possible worlds, with intervals, paired within worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ebrank.addons.whatif.belief import Belief
from ebrank.addons.whatif.history import History
from ebrank.addons.whatif.replay import Begin, Outcome, Plan, Replay
from ebrank.errors import ParameterError
from ebrank.kernels import streams
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker
from ebrank.parameters import check_whole, require
from ebrank.typing import Floats

TODAY = "today"
LEVEL = 0.9
WORLDS, PERIODS = 32, 20
MOST_LISTS = 100_000
"""The most lists that a policy serves in a world: of a larger log, each world has some queries."""

Progress = Callable[[int, int], None]


class Interval(NamedTuple):
    """A mean over worlds, and the ends of the interval that holds another world's value."""

    mean: float
    low: float
    high: float


def interval(values: Floats, level: float = LEVEL) -> Interval:
    """Return the mean and the interval of values that are drawn alike.

    The n-th of N ordered draws exceeds another draw with probability n/(N + 1) (Wilks 1941), so the
    ends are at (N + 1)(1 ± level)/2. Infinite values are ordered, too, but have no mean.

    >>> interval(np.arange(1.0, 20.0))
    Interval(mean=10.0, low=1.0, high=19.0)
    """
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        return Interval(*[float("nan")] * 3)
    tail = (1.0 - level) / 2.0
    if np.isfinite(ordered).all():
        low, high = np.quantile(ordered, [tail, 1.0 - tail], method="weibull")
        return Interval(float(ordered.mean()), float(low), float(high))
    places = np.clip((len(ordered) + 1) * np.array([0.5, tail, 1.0 - tail]) - 0.5, 0, None)
    middle, low, high = ordered[np.minimum(places.astype(np.int64), len(ordered) - 1)]
    return Interval(float(middle), float(low), float(high))


@dataclass(frozen=True, eq=False)
class Forecast:
    """What policies would do. Arrays have a row for each world and a column for each policy.

    Attributes:
        policies: their texts.
        reference: the number of the policy that the others are compared with.
        lists: how many lists each world serves to all queries.
        days: how long that takes; None if the log does not tell.
        value: expected outcome per list, with a third axis for periods.
        new, found, wait: about new items, see `replay.Outcome`.
        notes: what the log did not tell.
    """

    policies: tuple[str, ...]
    reference: int
    begin: Begin
    lists: int
    length: int
    days: float | None
    seed: int
    outcome: str
    value: Floats
    new: Floats
    found: Floats
    wait: Floats
    notes: tuple[str, ...] = ()

    @property
    def per_list(self) -> Floats:
        """The mean of all periods."""
        return np.asarray(np.nanmean(self.value, axis=2))

    @property
    def ahead(self) -> Floats:
        """How far each policy is ahead of the reference in the same world, per list and period."""
        return self.value - self.value[:, [self.reference]]

    @property
    def difference(self) -> Floats:
        """The same for the mean of all periods."""
        return self.per_list - self.per_list[:, [self.reference]]

    @property
    def gained(self) -> Floats:
        """Outcome gained over the reference from the beginning to the end of each period."""
        steps = np.nan_to_num(self.ahead)
        return np.asarray(np.cumsum(steps, axis=2) * (self.lists / self.value.shape[2]))

    @property
    def cost(self) -> Floats:
        """The most outcome that a policy has lost to the reference at some time."""
        return np.asarray(np.maximum(-self.gained.min(axis=2), 0.0))

    @property
    def paid_back(self) -> Floats:
        """Lists after which the loss is made up for good; infinite if that takes longer."""
        behind, steps = self.gained < 0.0, self.value.shape[2]
        last = steps - behind[:, :, ::-1].argmax(axis=2)  # periods until it was last behind
        lists = np.where(last < steps, (last + 1.0) * (self.lists / steps), np.inf)
        return np.where(behind.any(axis=2), lists, 0.0)

    @property
    def best(self) -> int:
        """The policy with the highest expected outcome."""
        return int(self.per_list.mean(axis=0).argmax())


def whatif(
    history: History,
    policies: Sequence[str],
    *,
    begin: Begin = "today",
    worlds: int = WORLDS,
    lists: int | None = None,
    length: int | None = None,
    periods: int = PERIODS,
    most_lists: int = MOST_LISTS,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Forecast:
    """Return what policies would do in worlds that a log leaves possible.

    Args:
        history: the log.
        policies: texts of policies, or of any ranker of the lab; `today` is the one in use.
        begin: with today's evidence, or at the start of the log without any.
        worlds: how many worlds to draw.
        lists: how many lists to serve, by default as many as the log has.
        length: how many items a list shows, by default as many as the log's do.
        periods: how often policies learn, evenly spread.
        most_lists: if there are more, each world has some of the queries, drawn at random.
        seed: of all draws; the same seed gives the same forecast.
        threads: cores to use, all by default; never changes a result.
        progress: called with the replays done and to be done.
    """
    require(len(policies) > 0, "name at least one policy")
    require(len(set(policies)) == len(policies), "a policy is named twice")
    check_whole("worlds", worlds, at_least=2)
    check_whole("periods", periods, at_least=1)
    check_whole("lists", lists, at_least=periods, optional=True)
    check_whole("length", length, at_least=1, optional=True)
    history.check()
    rankers = [_ranker(text, history) for text in policies]
    logged = int(history.lists.sum())
    served = max(logged, periods) if lists is None else lists
    plan = Plan.of(history, begin, served, length or history.list_length)
    belief = Belief.of(history, threads)
    outcomes: list[list[Outcome]] = []
    for world in range(worlds):
        key = streams.trial_key(seed, world)
        part = _some(plan, most_lists, periods, key)
        draw = belief.draw(key, part.history)
        outcomes.append([])
        for ranker in rankers:
            outcomes[-1].append(Replay(part, draw, key, periods, threads).run(ranker))
            if progress is not None:
                progress(len(rankers) * world + len(outcomes[-1]), len(rankers) * worlds)
    days = None if history.days is None else history.days * served / max(logged, 1)
    weighted = len(history.stats.behaviors.all) > 1
    return Forecast(
        policies=tuple(policies),
        reference=policies.index(TODAY) if TODAY in policies else 0,
        begin=begin,
        lists=served,
        length=plan.length,
        days=days,
        seed=seed,
        outcome="weighted outcome" if weighted else "clicks",
        **{
            name: np.array([[getattr(each, name) for each in row] for row in outcomes])
            for name in Outcome._fields
        },
        notes=tuple(_notes(history, belief, plan, policies)),
    )


def _ranker(text: str, history: History) -> Ranker:
    if text == TODAY:
        return registry.parse(history.today or "bm25")
    try:
        return registry.parse(text)
    except ParameterError as problem:
        raise ParameterError(f"--policy {text}: {problem}") from None


def _some(plan: Plan, most: int, periods: int, key: np.uint64) -> Plan:
    """Return the plan of randomly chosen queries that have at most so many lists together."""
    if plan.lists <= most:
        return plan
    rng = np.random.default_rng([int(key), 0])
    order = rng.permutation(plan.history.n_queries)
    lists = plan.history.lists[order] * (plan.lists / max(plan.history.lists.sum(), 1))
    chosen = max(int(np.searchsorted(np.cumsum(lists), most, side="right")), 1)
    part = plan.part(np.sort(order[:chosen]))
    return part if part.lists >= periods else plan


def _notes(history: History, belief: Belief, plan: Plan, policies: Sequence[str]) -> list[str]:
    notes = []
    if TODAY in policies and not history.today and plan.begin == "start":
        notes.append("today is the order of the whole log's lists, which nobody had at its start")
    assumed = belief.assumed(plan.length)
    if assumed:
        notes.append(
            f"the log does not tell how often users look at {', '.join(assumed)}: the configured "
            "curve applies there, without doubt about it, so intervals are too narrow"
        )
    if not history.features.any():
        notes.append("without features, all items that nobody has seen are alike to every policy")
    if history.arrived is None:
        notes.append("the log has no times: no new items arrive")
    elif not (plan.due >= 0).any():
        notes.append("no new item arrives within these lists")
    return notes


def plain(forecast: Forecast) -> dict[str, Any]:
    """Return a forecast as plain values, for JSON; what is infinite or unknown is None."""
    measures = {
        "per_list": forecast.per_list,
        "difference": forecast.difference,
        "first_period": forecast.ahead[:, :, 0],
        "cost": forecast.cost,
        "paid_back_after": forecast.paid_back,
        "from_new_items": forecast.new,
        "new_items_found": forecast.found,
        "lists_until_half_found": forecast.wait,
    }
    return {
        "from": forecast.begin,
        "lists": forecast.lists,
        "list_length": forecast.length,
        "days": forecast.days,
        "worlds": len(forecast.value),
        "seed": forecast.seed,
        "level": LEVEL,
        "outcome": forecast.outcome,
        "reference": forecast.policies[forecast.reference],
        "best": forecast.policies[forecast.best],
        "policies": [
            {"policy": policy}
            | {name: _plain(interval(values[:, at])) for name, values in measures.items()}
            | {"by_period": [_finite(mean) for mean in forecast.value[:, at].mean(axis=0)]}
            for at, policy in enumerate(forecast.policies)
        ],
        "notes": list(forecast.notes),
    }


def _plain(values: Interval) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in values._asdict().items()}


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
