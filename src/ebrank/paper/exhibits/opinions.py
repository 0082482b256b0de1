"""Features that are opinions: an LLM's score, an editor's stars, an embedding.

`auto` gets one more feature, or 256 more, and has to find out from clicks how far to trust it: an
opinion that is right (the label plus a little noise), one with some of its labels replaced at
random, one that is reversed for a segment of the items, and an embedding, which may have nothing to
do with relevance. Everything else is the same, users included. The claims: `auto` is level with
itself without the feature, or ahead; and ahead where the opinion is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from ebrank.kernels import streams
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.lab.rankers.ebrank import Auto
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.model.policy import policies
from ebrank.model.prior.learners.linear import linear_scores
from ebrank.paper.exhibits.beyond import AHEAD, BEHIND, LEVEL_WITH, RARE, RATE, SIGNS, USUAL
from ebrank.paper.framework import measures
from ebrank.paper.framework.display import (
    VERDICTS,
    Column,
    Display,
    Figure,
    Finding,
    Panel,
    Row,
    Series,
    Table,
)
from ebrank.paper.framework.entrants import AUTO
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Run, Setup
from ebrank.paper.framework.measures import COLD, CUM, MEASURES, RUN, Measure
from ebrank.paper.framework.numbers import p_text
from ebrank.paper.framework.significance import Contrast, pairwise
from ebrank.statistics.trust import trust
from ebrank.typing import Bools, Features, Floats

Draw: TypeAlias = Callable[[Dataset, np.random.Generator], Floats]
"""Makes the columns of an opinion, shape (rows, columns)."""
Place: TypeAlias = tuple[str, str]
"""A world, and the key of an opinion, `WITHOUT` for none."""

WITHOUT = ""
SHORT = 10
"""A short log has so many times fewer sessions."""
SHORT_LOG = "× 0.15, short log"
NOISE = 0.25
"""Standard deviation of the noise that is added to an opinion, in labels."""
KIND = 0.3
"""Share of the items that are of the kind that an opinion is against."""
COLUMNS, FACTORS, EMPTY = 256, 16, 64
"""Columns of an embedding, hidden factors behind them, and how many columns show none of them."""
TELLING = 0.5
"""Labels' share of the variance of the one factor of a useful embedding that is telling."""
SAMPLE = 4096
"""Rows that principal components are learned from."""
STREAM = 8
"""Opinions come from a stream that neither `ebrank.kernels.streams` nor the toy uses."""

TITLE = "Opinions as features"
THEME = "EBRank auto trusts an opinion as far as it proves right"
ABOUT = (
    f"Right: the label plus normal noise ({NOISE:g} labels). Corrupted: labels replaced at random, "
    f"100 % is nothing but noise. Against one kind: reversed for {100 * KIND:.0f} % of the items, "
    "drawn at random. Against what is shown most: reversed for items in the upper half of their "
    "query's range by the production ranker, whose lists the log begins with; both with a column "
    "that says who is in the segment. Embedding: random projections of "
    f"{FACTORS} factors, with noise; {EMPTY} of the {COLUMNS} columns are noise alone. Labels make "
    "half of the variance of one factor, or, where it is useless, nothing. Short log: a tenth of "
    "the sessions."
)


# --- opinions ------------------------------------------------------------------------------------


def corrupted(share: float) -> Draw:
    """Return labels with a little noise, after replacing a share of them at random."""

    def draw(data: Dataset, rng: np.random.Generator) -> Floats:
        labels = data.labels.astype(np.float64)
        wrong = rng.random(data.n_rows) < share
        labels[wrong] = rng.integers(0, data.max_label + 1, int(wrong.sum()))
        return (labels + NOISE * rng.standard_normal(data.n_rows))[:, None]

    return draw


def against(segment: Callable[[Dataset, np.random.Generator], Bools], *, split: bool) -> Draw:
    """Return an opinion that is reversed in a segment, and who is in the segment.

    With `split`, the opinion has a column inside and one outside of the segment, each undecided
    about the other items.
    """

    def draw(data: Dataset, rng: np.random.Generator) -> Floats:
        inside = segment(data, rng)
        right, undecided = corrupted(0.0)(data, rng)[:, 0], data.max_label / 2
        stated = np.where(inside, data.max_label - right, right)
        if not split:
            return np.column_stack([stated, inside])
        halves = np.where(inside, stated, undecided), np.where(inside, undecided, stated)
        return np.column_stack([*halves, inside])

    return draw


def one_kind(data: Dataset, rng: np.random.Generator) -> Bools:
    """Return items drawn at random."""
    inside: Bools = rng.random(data.n_rows) < KIND
    return inside


def shown_most(data: Dataset, rng: np.random.Generator) -> Bools:
    """Return the items that the production ranker scores in the upper half of a query's range."""
    inside: Bools = _scaled(data, data.baseline[:, None])[:, 0] > 0.5
    return inside


def embedding(telling: float, rank: int | None = None) -> Draw:
    """Return random projections of hidden factors, with noise, or some principal components.

    Labels make the share `telling` of the variance of the first factor.
    """

    def draw(data: Dataset, rng: np.random.Generator) -> Floats:
        factors = rng.standard_normal((data.n_rows, FACTORS))
        labels = data.labels - data.labels.mean()
        factors[:, 0] *= (1.0 - telling) ** 0.5
        factors[:, 0] += telling**0.5 * labels / (labels.std() or 1.0)
        projection = rng.standard_normal((FACTORS, COLUMNS)) / FACTORS**0.5
        projection[:, -EMPTY:] = 0.0
        vectors = np.einsum("ij,jk->ik", factors, projection)
        vectors += rng.standard_normal(vectors.shape)
        return vectors if rank is None else principal_components(vectors, rank)

    return draw


def principal_components(vectors: Floats, rank: int) -> Floats:
    """Return the first principal components of a matrix's rows.

    The same bits everywhere: the last digits of BLAS and LAPACK depend on the number of threads, so
    sums are NumPy's own, directions are rounded, and their largest number is positive.
    """
    sample = vectors[:SAMPLE] - vectors[:SAMPLE].mean(axis=0)
    rising = np.linalg.eigh(np.einsum("ij,ik->jk", sample, sample))[1]
    directions = rising[:, ::-1][:, :rank]
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    components: Floats = np.einsum("ij,jk->ik", vectors, (directions * signs).round(6))
    return components


class Opinion(NamedTuple):
    """What readers call an opinion, and how it is made."""

    label: str
    draw: Draw


CORRUPTED = {0.0: "right", 0.2: "corrupted20", 0.4: "corrupted40", 0.6: "corrupted60", 1.0: "noise"}
"""The keys of corrupted opinions, by the share that is."""
RIGHT = CORRUPTED[0.0]
OPINIONS = {
    **{
        key: Opinion(f"{100 * share:.0f} % corrupted" if share else "right", corrupted(share))
        for share, key in CORRUPTED.items()
    },
    "kind": Opinion("against one kind", against(one_kind, split=False)),
    "shown": Opinion("against what is shown most", against(shown_most, split=False)),
    "split": Opinion("the same, a column for each segment", against(shown_most, split=True)),
    "embedding": Opinion(f"embedding, {COLUMNS} columns", embedding(TELLING)),
    "components": Opinion(f"embedding, {FACTORS} components", embedding(TELLING, FACTORS)),
    "useless": Opinion(f"useless embedding, {COLUMNS} columns", embedding(0.0)),
    "useless_components": Opinion(
        f"useless embedding, {FACTORS} components", embedding(0.0, FACTORS)
    ),
}
LABELS = {WITHOUT: "no opinion"} | {key: opinion.label for key, opinion in OPINIONS.items()}


@dataclass(frozen=True)
class Opinionated(Ranker):
    """`auto` with an opinion as one more feature."""

    name = "opinionated"
    help = "auto, with an opinion as one more feature."
    settings = ("non-concate",)

    opinion: str = param(RIGHT, "which opinion", choices=tuple(OPINIONS))
    learner_of_auto: str = param("linear", "auto's learner", choices=("linear", "trees"))

    def learner(self, trial: Trial) -> TrialLearner:
        """Return `auto`'s learner on a dataset that has the opinion too."""
        data = trial.dataset
        data = data.with_columns(columns(data, self.opinion, trial.key))
        auto = Auto(policies.make(AUTO, learner=self.learner_of_auto))
        return auto.learner(replace(trial, dataset=data))


def columns(data: Dataset, opinion: str, key: np.uint64) -> Features:
    """Return the columns of an opinion in the trial with this key, scaled as all features are."""
    rng = np.random.Generator(np.random.SFC64(int(streams.child(key, STREAM))))
    return _scaled(data, OPINIONS[opinion].draw(data, rng).astype(np.float32))


def _scaled(data: Dataset, values: Features) -> Features:
    from ebrank.kernels.min_max import query_min_max  # compiled: imported when needed

    return query_min_max(values, data.query_pointers)


# --- runs ----------------------------------------------------------------------------------------


def worlds(config: SimulationConfig, data: Dataset) -> dict[str, SimulationConfig]:
    """Return the conditions that opinions meet: the usual ones, few clicks, and even fewer."""
    rare = replace(config, click_rate=RATE * config.click_rate)
    sessions = max(config.updates, config.session_count(data) // SHORT)
    return {USUAL: config, RARE: rare, SHORT_LOG: replace(rare, sessions=sessions)}


def runs(setup: Setup) -> NamedRuns:
    """Return `auto` without and with every opinion, in every world."""
    return {
        (label, key): Run(Opinionated(key), config) if key else setup.run(AUTO, config)
        for label, config in worlds(setup.config, setup.dataset).items()
        for key in LABELS
    }


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the table, two figures, and whether `auto` does what it must."""
    shares = trusted(setup, results)
    return Display(
        tables=(table(setup, results, shares),),
        figures=(by_corruption(setup, results, shares), by_opinion(setup, results)),
        findings=tuple(findings(results)),
    )


def trusted(setup: Setup, results: NamedResults) -> dict[Place, Floats]:
    """Return the opinion's share of the spread of `auto`'s scores at the end of each trial."""
    data = setup.config.judged(setup.dataset)
    shares = {place: np.zeros(setup.trials) for place in results if place[1]}
    for opinion in OPINIONS:
        for trial in range(setup.trials):
            own = columns(data, opinion, streams.trial_key(setup.seed, trial))
            features = data.with_columns(own).features
            for world in _worlds(results):
                weights = results[world, opinion].trials[trial].weights
                assert weights is not None
                by_fold = [_share(features, row, data.n_features) for row in np.atleast_2d(weights)]
                shares[world, opinion][trial] = np.mean(by_fold)
    return shares


def _share(features: Features, weights: Floats, first: int) -> float:
    """Return how far the columns from the first one on are trusted by a linear score."""
    theta = np.append(weights[-features.shape[1] :], 0.0)
    groups = [list(range(first)), list(range(first, features.shape[1]))]
    return float(trust(lambda x: linear_scores(x, theta, None), features, groups)[1])


def gains(results: NamedResults, measure: Measure, border: float = 0.0) -> dict[Place, Contrast]:
    """Return what each opinion adds in each world, adjusted over all of them."""
    pairs = {
        (world, key): (result, results[world, WITHOUT])
        for (world, key), result in results.items()
        if key
    }
    return pairwise(pairs, measure, border)


# --- table ---------------------------------------------------------------------------------------


def table(setup: Setup, results: NamedResults, shares: Mapping[Place, Floats]) -> Table:
    """Return the measures of every opinion, world by world, and how far it was trusted."""
    by_measure = [gains(results, measure) for measure in MEASURES]
    rows = []
    for place, result in results.items():
        world, key = place
        marks = [SIGNS.get(own[place].verdict, "") if key else "" for own in by_measure]
        own = zip(measures.cells(result), marks, strict=True)
        share = measures.cell(shares[place], 2) if key else ""
        cells = (*(replace(cell, marks=mark) for cell, mark in own), share)
        rows.append(Row((LABELS[key], *cells), group=world, focus=not key))
    ndcg = measures.ndcg_at(setup.config.cutoffs[0], setup.config.list_length)
    return Table(
        "opinions",
        TITLE,
        f"EBRank auto without and with an opinion as one more feature. {ABOUT} {ndcg} on test "
        f"queries, {measures.mean_of(list(results.values()))}. {AHEAD} : significantly better than "
        f"without an opinion, {BEHIND} : significantly worse (Fisher's randomization test over "
        "test queries, p < .05, Holm-adjusted over opinions and worlds). trust: the opinion's "
        "share of the spread of the prior's scores at the end of the run.",
        (Column("opinion"), *measures.COLUMNS, Column("trust")),
        tuple(rows),
    )


# --- figures -------------------------------------------------------------------------------------


def by_corruption(setup: Setup, results: NamedResults, shares: Mapping[Place, Floats]) -> Figure:
    """Return what an opinion adds, and how far it is trusted, by how much of it is wrong."""

    def line(world: str, values: Callable[[Place], Floats]) -> Series:
        x = tuple(100.0 * share for share in CORRUPTED)
        own = np.array([values((world, key)) for key in CORRUPTED.values()])
        return measures.series(world, world, x, own.T)

    def panel(title: str, values: Callable[[Place], Floats]) -> Panel:
        lines = tuple(line(world, values) for world in _worlds(results))
        return Panel(title, "% of its labels replaced at random", title, lines, zero=True)

    return Figure(
        "opinions",
        "An opinion is trusted as far as it proves right",
        "EBRank auto with an opinion as one more feature. Left: gain over itself without. Right: "
        "the opinion's share of the spread of the prior's scores at the end. "
        f"{measures.averaged(setup.trials)}.",
        (
            panel(f"Gain in {RUN.title}", lambda place: _gain(results, place)),
            panel("Trust", lambda place: shares[place]),
        ),
    )


def by_opinion(setup: Setup, results: NamedResults) -> Figure:
    """Return what the other opinions add."""
    keys = [key for key in OPINIONS if key not in CORRUPTED.values()]
    names = tuple(LABELS[key] for key in keys)
    bars = tuple(
        measures.series(
            world, world, names, np.array([_gain(results, (world, key)) for key in keys]).T
        )
        for world in _worlds(results)
    )
    title = f"Gain in {RUN.title}"
    return Figure(
        "opinions-others",
        "Opinions against a segment, and embeddings",
        f"Gain of EBRank auto over itself without the feature. {ABOUT} "
        f"{measures.averaged(setup.trials)}.",
        (Panel(title, "", f"{RUN.title} above EBRank auto without it", bars, kind="bars"),),
    )


def _worlds(results: NamedResults) -> list[str]:
    return list(dict.fromkeys(world for world, _ in results))


def _gain(results: NamedResults, place: Place) -> Floats:
    result: Result = results[place]
    return RUN.values(result) - RUN.values(results[place[0], WITHOUT])


# --- findings ------------------------------------------------------------------------------------


def findings(results: NamedResults) -> Iterator[Finding]:
    """Yield whether `auto` is level or ahead with each opinion, and ahead with the right one."""
    for measure in (COLD, CUM, RUN):
        yield _finding(
            gains(results, measure), measure, RIGHT, "EBRank auto gains by an opinion that is right"
        )
    for measure, margin in LEVEL_WITH.items():
        level = gains(results, measure, -margin)
        for key in OPINIONS:
            claim = f"EBRank auto loses at most {measure.text(margin)} by an opinion: {LABELS[key]}"
            yield _finding(level, measure, key, claim)


def _finding(
    contrasts: Mapping[Place, Contrast], measure: Measure, key: str, claim: str
) -> Finding:
    """Return the check of a claim about all worlds; the least favorable one decides."""
    own = {world: each for (world, opinion), each in contrasts.items() if opinion == key}
    decides = max(own, key=lambda world: (VERDICTS.index(own[world].verdict), -own[world].share))
    least = own[decides]
    what = "level" if least.border else "ahead"
    return least.finding(
        f"opinion-{what}-{measure.name}-{key}",
        f"{claim}, in {measure.title} and every world",
        measure,
        THEME,
        f"{measure.title}, {LABELS[key]}",
        f"{decides}, adjusted {p_text(least.p_value)}",
        ours=True,
    )


EXHIBIT = Exhibit("opinions", display, runs, on_request=True)
