"""The paper's toy example of exploitation bias (its Figure 1), from a real small run.

A query has six old items, A to F. G is new: its features are those of A, and so is its relevance;
all it lacks is clicks. A model that takes clicks for a feature has learned that items without
clicks are bad, and buries G. The learners, the users and their clicks are the simulator's own. BM25
serves first, then each ranker; then G enters every query at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ebrank.equations import relevance_probability
from ebrank.kernels import streams
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.preparation import prepare
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker, ScoreModel, Trial, fixed_model
from ebrank.lab.sessions.session import World
from ebrank.lab.simulation import play
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.world import new_world, stats_of
from ebrank.model import scoring
from ebrank.model.formula import ItemPrior, Score
from ebrank.paper.framework.display import (
    Cell,
    Column,
    Display,
    Effect,
    Figure,
    Finding,
    Panel,
    Row,
    Series,
    Table,
)
from ebrank.paper.framework.entrants import EBRANK, Entrant, entrant_of
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, Setup
from ebrank.paper.framework.measures import exploitation_ratio
from ebrank.paper.framework.numbers import number, p_text
from ebrank.paper.framework.significance import contrast
from ebrank.typing import Floats

ITEMS = "ABCDEFG"
LABELS = (2, 1, 1, 0, 0, 0, 2)
OLD, NEW = ITEMS.index("A"), ITEMS.index("G")
FEATURES = {"x1": 1.0, "x2": 0.5, "x3": 0.0}
"""How much of an item's label each feature carries; the rest is noise with deviation 1."""
QUERIES = {"train": 60, "vali": 20, "test": 20}
STREAM = 7
"""Features come from a stream that `ebrank.kernels.streams` does not use."""
BEFORE, AFTER = 20, 30
"""Sessions of each query by the ranker, before and after G enters."""

BIASED, OURS = entrant_of("cftopk:features=concate"), entrant_of(EBRANK)
CAPTION = (
    f"Means over {QUERIES['test']} test queries. G has the features and the relevance of A, and no "
    "clicks yet; CFTopK has clicks for a feature. Left: relevance as the models estimate it, "
    "exploration left out, when G enters. Right: the place of G in the lists that are made, "
    "exploration included; users see five items. EBRank (paper) has its default ε."
)


@dataclass(frozen=True)
class Fate:
    """What happened to G under one ranker, as means over test queries.

    Attributes:
        estimates: relevance of A to G by the model, when G enters.
        ranks: of G in the lists, when it enters and after each further session of its query.
        first_ranks: of G in each query when it enters.
        ratios: share of each feature in the model's absolute weights; x^b, if used, is last.
        shown: share of the queries in which G was ever shown.
    """

    estimates: Floats
    ranks: Floats
    first_ranks: Floats
    ratios: Floats
    shown: float


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the picture, a table with the numbers behind it, and whether G is buried."""
    data = dataset(setup.seed)
    fates = {entrant: watch(data, registry.parse(entrant.key), setup) for entrant in (BIASED, OURS)}
    return Display((table(fates),), (figure(fates),), (buried(fates),))


def dataset(seed: int) -> Dataset:
    """Return queries of seven items, of which the last is the twin of the first."""
    key = np.uint64(streams.child(streams.trial_key(seed, 0), STREAM))
    names, n = tuple(FEATURES), sum(QUERIES.values())
    signal = np.outer(LABELS, tuple(FEATURES.values()))
    features = signal + _normal(key, n, len(ITEMS), len(names))
    features[:, NEW] = features[:, OLD]
    flat = features.reshape(-1, len(names)).astype(np.float32)
    return prepare(
        Dataset(
            name="toy",
            features=flat,
            labels=np.tile(np.array(LABELS, np.int8), n),
            query_pointers=np.arange(n + 1) * len(ITEMS),
            query_ids=np.arange(n).astype(np.str_),
            query_splits=np.repeat(np.arange(len(SPLITS), dtype=np.int8), list(QUERIES.values())),
            baseline=flat[:, names.index("x2")],
            feature_ids=np.arange(1, len(names) + 1, dtype=np.int32),
            max_label=max(LABELS),
        )
    )


def _normal(key: np.uint64, *shape: int) -> Floats:
    keys = (np.uint64(streams.child(key, i)) for i in range(int(np.prod(shape))))
    draws = [streams.normal(own) for own in keys]
    return np.array(draws).reshape(shape)


def watch(data: Dataset, ranker: Ranker, setup: Setup) -> Fate:
    """Return what happens to G under a ranker."""
    service = _Service(data, ranker, setup)
    service.serve(fixed_model(data.baseline.astype(np.float64)), setup.config.warmup_sessions)
    for _ in range(BEFORE):
        service.serve(service.learner.update(), 1)
    service.world.entered[:] = len(ITEMS)
    model = service.learner.update()
    estimates = service.scores(model, model.offline)
    ratios = exploitation_ratio(() if model.weights is None else model.weights)
    ranks = [service.ranks(model)]
    for _ in range(AFTER):
        service.serve(model, 1)
        model = service.learner.update()
        ranks.append(service.ranks(model))
    shown = service.of_items(service.trial.stats.shown)[:, NEW] > 0
    return Fate(
        estimates.mean(axis=0), np.mean(ranks, axis=1), ranks[0], ratios, float(shown.mean())
    )


class _Service:
    """A ranker that serves the toy's queries: the simulator's sessions, but G waits outside."""

    def __init__(self, data: Dataset, ranker: Ranker, setup: Setup) -> None:
        old = len(ITEMS) - 1
        self.config: SimulationConfig = replace(setup.config, initial_candidates=(old, old))
        self.data = data
        self.key = streams.trial_key(setup.seed, 0)
        self.world: World = new_world(data, self.config, self.key)
        self.world.arrivals[:] = np.arange(data.n_rows)  # in order of their names: G is the last
        self.world.positions[:] = np.tile(np.arange(len(ITEMS)), data.n_queries)
        self.trial = Trial(
            data,
            self.world.relevance,
            stats_of(self.world, self.config.behaviors),
            self.config.assumed or self.config.users.examination,
            self.key,
        )
        self.learner = ranker.learner(self.trial)

    def serve(self, model: ScoreModel, sessions: int) -> None:
        """Serve every query a number of times; nothing enters by chance."""
        plan = play.everyone(sessions, self.data.n_queries)
        browse = self.config.users.browse.compiled
        play.play(self.world, model, plan, browse, 0.0, self.key, None)

    def of_items(self, rows: npt.NDArray[np.generic]) -> Floats:
        """Return the numbers of test queries' rows, shape (queries, items)."""
        by_query = rows.reshape(-1, len(ITEMS)).astype(np.float64)
        return by_query[self.data.queries_in("test")]

    def scores(self, model: ScoreModel, score: Score) -> Floats:
        """Return the scores of test queries' items, shape (queries, items)."""
        trial, prior = self.trial, ItemPrior(model.a, model.b)
        assumed = model.examination or trial.examination
        return self.of_items(scoring.scores(score, prior, trial.stats, assumed))

    def ranks(self, model: ScoreModel) -> Floats:
        """Return the rank of G in each list, shape (queries,); ties as in the simulator."""
        scores = self.scores(model, model.serve)
        order = np.lexsort((self.of_items(self.world.leaves), -scores), axis=1)
        ranks: Floats = 1.0 + np.argmax(order == NEW, axis=1)
        return ranks


def figure(fates: dict[Entrant, Fate]) -> Figure:
    """Return what models think of the items when G enters, and G's rank from then on."""
    relevance = relevance_probability(np.array(LABELS, np.float64), max(LABELS))
    truth = Series("true relevance", "oracle", tuple(ITEMS), tuple(relevance.tolist()))
    bars = (
        Series(entrant.label, entrant.style, tuple(ITEMS), tuple(fate.estimates.tolist()))
        for entrant, fate in fates.items()
    )
    sessions = tuple(map(float, range(AFTER + 1)))
    lines = (
        Series(entrant.label, entrant.style, sessions, tuple(fate.ranks.tolist()))
        for entrant, fate in fates.items()
    )
    arrival = Panel("When G enters", "item", "relevance", (truth, *bars), "bars", zero=True)
    since = "sessions since G entered"
    later = Panel("From then on", since, "rank of G", tuple(lines), down=True)
    title = "Toy example: A is old, G is new and just like A"
    return Figure("toy", title, CAPTION, (arrival, later))


def table(fates: dict[Entrant, Fate]) -> Table:
    """Return the models' weights, and what they do to G."""
    columns = (
        Column("ranker"),
        *(Column(name, "weight") for name in (*FEATURES, "x^b")),
        *(Column(item, "relevance") for item in (ITEMS[OLD], ITEMS[NEW])),
        *(Column(when, "rank of G") for when in ("first", "last")),
        Column("G shown"),
    )
    return Table(
        "toy",
        "Toy example: what is behind the picture",
        "Weights: shares of all absolute weights when G enters; EBRank's are those of its prior, "
        "which has no x^b. Relevance: of A and G by the model. Rank of G: when it enters and after "
        f"{AFTER} sessions of each query. G shown: share of the queries in which it ever was.",
        columns,
        tuple(Row((entrant.label, *_cells(fate))) for entrant, fate in fates.items()),
    )


def _cells(fate: Fate) -> Iterator[Cell]:
    ratios: list[float | None] = [*fate.ratios.tolist(), None]
    yield from (Cell(ratio) for ratio in ratios[: len(FEATURES) + 1])
    yield from (Cell(float(estimate)) for estimate in fate.estimates[[OLD, NEW]])
    yield from (Cell(float(rank), digits=1) for rank in fate.ranks[[0, -1]])
    yield Cell(fate.shown, digits=2)


def buried(fates: dict[Entrant, Fate]) -> Finding:
    """Return whether the model that over-exploits clicks ranks G lower than EBRank does."""
    first, ours = fates[BIASED].first_ranks, fates[OURS].first_ranks
    lower = contrast((first - ours) / len(first))
    losses = [
        number(float(np.subtract(*fates[entrant].estimates[[OLD, NEW]])), 3)
        for entrant in (BIASED, OURS)
    ]
    return Finding(
        "toy-new-item-buried",
        "CFTopK with clicks as a feature ranks the new item G lower than EBRank (paper) does",
        lower.verdict,
        f"G enters at rank {first.mean():.1f} with CFTopK and {ours.mean():.1f} with EBRank, which "
        f"rate it {losses[0]} and {losses[1]} below its old twin A; {p_text(lower.p_value)}",
        "Clicks as a feature bury a new item",
        "toy example",
        effect=Effect(lower.difference, lower.low, lower.high, "ranks", 1),
    )


EXHIBIT = Exhibit("toy", display)
