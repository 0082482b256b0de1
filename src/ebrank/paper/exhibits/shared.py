"""Beyond the paper: a shop, where one item is a candidate of many queries, most of them rare.

The worlds are those of `shop-like`: items differ by what features do not know about them (τ, in
logits), in all their queries alike; traffic follows Zipf's law; half of the items arrive during the
run. The usual way to use evidence from other queries, the item's click rate as one more feature,
is the paper's exploitation bias again: what is new has no clicks anywhere.

The worlds are the exhibit's own, whatever dataset is reproduced; only `--scale` applies to them. As
many are drawn as there are trials, each with its own catalog and users. Shares are over the lists
of all queries, not of test queries alone: a shop has none, and every list counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product, starmap
from typing import NamedTuple

import numpy as np

from ebrank.errors import DataError
from ebrank.kernels.threads import map_blocks
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.data.loading import load
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial, TrialLearner
from ebrank.lab.rankers.ebrank import PolicyLearner
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import compile_for, run_trial
from ebrank.lab.simulation.result import SHARES
from ebrank.lab.simulation.users import parse
from ebrank.model.policy import policies
from ebrank.paper.framework import measures
from ebrank.paper.framework.display import Column, Display, Figure, Panel, Row, Series, Table
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, Setup
from ebrank.paper.framework.numbers import number
from ebrank.typing import Floats

TAUS = (0.0, 0.4, 0.8, 1.2)
LEVELS = {-1.6: "clicks common", -3.9: "clicks rare"}
LISTS, LENGTH = 75, 10
"""Lists per query of a run, on average, and the items of each."""
SEEDS = 1000
"""Worlds of one seed; those of the next have others."""


# --- contestants ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemRate(Ranker):
    """`auto` with what shops do: the item's click rate over all its queries is a feature."""

    name = "itemrate"
    help = "auto, with the item's smoothed click rate over all its queries as one more feature."
    settings = ("non-concate",)

    def learner(self, trial: Trial) -> TrialLearner:
        """Return a learner that computes the feature anew at every update."""
        return ItemRateLearner(trial)


class ItemRateLearner:
    """Learns like `auto` from a dataset with one more column."""

    def __init__(self, trial: Trial) -> None:
        data = trial.dataset
        if data.items is None:
            raise DataError(
                f"the documents of {data.name!r} belong to one query each",
                remedy="Use a dataset whose queries share items, such as shop-like.",
            )
        self._items = data.items
        own = replace(trial, dataset=data.with_columns(np.zeros((data.n_rows, 1), np.float32)))
        self._learner = PolicyLearner(policies.make("auto", shared="none"), own, "all")

    def update(self) -> ScoreModel:
        """Refit with the click rates so far: (c + 0.2)/(E + 2) over all queries of an item."""
        learner = self._learner
        curve = learner.policy.prior.curve(learner.state, learner.trial.examination)
        sums = learner.trial.stats.sums(curve)
        clicks, exposure = (
            np.bincount(self._items, values)[self._items] for values in (sums.clicks, sums.exposure)
        )
        learner.trial.dataset.features[:, -1] = (clicks + 0.2) / (exposure + 2.0)
        return learner.update()


class Contestant(NamedTuple):
    """A ranker of the exhibit.

    Attributes:
        ranker: its text.
        label: what readers see.
        style: its color and marker.
        known: whether the item's effect is one of its features, as a bound for all others.
    """

    ranker: str
    label: str
    style: str
    known: bool = False


AUTO, ALONE = "auto:learn_from=all", "auto:shared=none,learn_from=all"
ITEM_RATE = f"{ItemRate.__module__}:{ItemRate.__name__}"
FAR_BELOW = "smoothedctr"
"""Left out of the figure because it would squeeze all others together."""
CONTESTANTS = (
    Contestant(AUTO, "EBRank auto", "auto"),
    Contestant(ALONE, "each query alone", "alone"),
    Contestant(ITEM_RATE, "click rate as a feature", "cftopk"),
    Contestant(FAR_BELOW, "Smoothed CTR", "smoothedctr"),
    Contestant(ALONE, "item effect known", "oracle", known=True),
)

# --- runs ----------------------------------------------------------------------------------------


class Condition(NamedTuple):
    """Worlds of one kind: how much items differ, and how rare clicks are."""

    level: float
    tau: float


CONDITIONS = tuple(starmap(Condition, product(LEVELS, TAUS)))
Shares = Mapping[tuple[Condition, Contestant], Floats]
"""Shape (worlds, shares)."""


def config_for(setup: Setup, dataset: Dataset) -> SimulationConfig:
    """Return the experiment on one of the shops; updates are as configured.

    Nothing serves before the ranker does: 20 lists of each query would leave none rare.
    """
    return replace(
        setup.config,
        traffic="zipf",
        sessions=LISTS * dataset.n_queries,
        list_length=LENGTH,
        users=parse(f"pbm:cutoff={LENGTH}"),
        warmup_sessions=0,
    )


def shop(setup: Setup, condition: Condition, world: int, *, known: bool = False) -> Dataset:
    """Return the shop of a world; worlds of the same number differ only in what conditions say."""
    effect = ",known=true" if known else ""
    name = f"shop-like:tau={condition.tau},level={condition.level}{effect}"
    origin = setup.dataset.origin
    scale = origin.scale if origin is not None and origin.preset else 1.0
    return load(name, scale=scale, seed=SEEDS * setup.seed + world)


def run(setup: Setup, condition: Condition, contestant: Contestant, world: int) -> Floats:
    """Return the shares of one contestant in one world."""
    data = shop(setup, condition, world, known=contestant.known)
    ranker = registry.parse(contestant.ranker)
    result = run_trial(data, ranker, config_for(setup, data), setup.seed, world, threads=1)
    assert result.shares is not None
    return result.shares


def display(setup: Setup, results: NamedResults) -> Display:
    """Run everything; return the table and the figure."""
    shares = all_shares(setup)
    return Display((table(setup, shares),), (figure(setup, shares),))


def mean_relevance(setup: Setup, condition: Condition) -> float:
    """Return the mean R of all candidates, over the worlds of a condition."""
    means = []
    for world in range(setup.trials):
        data = shop(setup, condition, world)
        assert data.relevance is not None
        means.append(data.relevance[data.labels].mean())
    return float(np.mean(means))


def all_shares(setup: Setup) -> Shares:
    """Return the shares of every contestant in all worlds, run on all cores."""
    first = shop(setup, CONDITIONS[0], 0)
    rankers = [registry.parse(contestant.ranker) for contestant in CONTESTANTS]
    compile_for(first, rankers, config_for(setup, first))
    names = list(product(CONDITIONS, CONTESTANTS))
    tasks = [(*name, world) for name in names for world in range(setup.trials)]
    shares = map_blocks(lambda at, _: run(setup, *tasks[at]), total=len(tasks), block=1)
    return dict(zip(names, np.array(shares).reshape(len(names), setup.trials, -1), strict=True))


# --- table and figure ----------------------------------------------------------------------------

TITLE = "Beyond the paper: items that many queries share"
TITLES = ("all lists", "rare queries", "head queries", "first lists", "new items")
COLUMNS = dict(zip(SHARES, TITLES, strict=True))
SETTING = (
    "A made-up shop: one item is a candidate of about ten queries, a few queries are asked all the "
    "time and most are rare, and half of the items arrive during the run. τ says how much items "
    "differ, in logits, by what their features do not know: a good photo, a bad seller."
)
READING = (
    "Share of all achievable clicks, 1 for the best lists of the items that had arrived: over all "
    "lists; those of rare queries, with fewer than 30 lists in the run; of head queries, with more "
    "than 150; the first 20 lists of every query; and on new items, those that arrived during the "
    "run: the clicks they got over those they would get in the best lists. A ranker that buries "
    "what is new has a low share there."
)
WHO = (
    "EBRank auto: queries share what they learn about an item. Each query alone: the same with "
    "shared=none. Click rate as a feature: that with the item's smoothed click rate over all its "
    "queries as one more feature, as many shops do. Smoothed CTR: sort by the item's own click "
    "rate in the query. Item effect known: each query alone with what features do not know as one "
    "more feature, which nobody has; a bound for the others."
)


def table(setup: Setup, shares: Shares) -> Table:
    """Return the shares of all contestants, by condition; the best but for the bound are bold."""
    rows = [
        row
        for condition in CONDITIONS
        for row in _rows(condition, shares, mean_relevance(setup, condition))
    ]
    worlds = "One world" if setup.trials == 1 else "Mean of the worlds ± standard deviation"
    columns = (Column("ranker"), *map(Column, COLUMNS.values()))
    return Table(
        "beyond-shared", TITLE, f"{SETTING} {READING} {WHO} {worlds}.", columns, tuple(rows)
    )


def _rows(condition: Condition, shares: Shares, relevance: float) -> Iterator[Row]:
    means = {each: shares[condition, each].mean(axis=0) for each in CONTESTANTS}
    best = np.max([means[each] for each in CONTESTANTS if not each.known], axis=0)
    for contestant in CONTESTANTS:
        cells = [
            replace(measures.cell(values), best=bool(mean == top and not contestant.known))
            for values, mean, top in zip(
                shares[condition, contestant].T, means[contestant], best, strict=True
            )
        ]
        yield Row(
            (contestant.label, *cells),
            group=f"{LEVELS[condition.level]} (mean R {number(relevance, 2)}), "
            f"τ = {condition.tau:g}",
            apart=contestant.known,
            focus=contestant is CONTESTANTS[0],
        )


def figure(setup: Setup, shares: Shares) -> Figure:
    """Return the shares of rare queries and of new items against τ."""

    def line(contestant: Contestant, level: float, place: int) -> Series:
        values = [shares[Condition(level, tau), contestant][:, place] for tau in TAUS]
        return measures.series(contestant.label, contestant.style, TAUS, np.array(values).T)

    drawn = [contestant for contestant in CONTESTANTS if contestant.ranker != FAR_BELOW]
    panels = tuple(
        Panel(
            f"{COLUMNS[name]}, {LEVELS[level]}",
            "τ: what features do not know about items",
            "share of possible clicks",
            tuple(line(contestant, level, SHARES.index(name)) for contestant in drawn),
        )
        for name, level in product(("rare", "late"), LEVELS)
    )
    averaged = (
        "One world" if setup.trials == 1 else "Mean of the worlds; bars are one standard deviation"
    )
    left_out = "Smoothed CTR, far below, is in the table only."
    caption = f"{SETTING} {READING} {WHO} {averaged}. {left_out}"
    return Figure("beyond-shared", TITLE, caption, panels)


EXHIBIT = Exhibit("shared", display, on_request=True)
