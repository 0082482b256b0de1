"""What is exploration worth? A split of users and a split of queries give different answers.

For each query of the embedded dataset a relevant item arrives that nobody has seen. Treatment
explores, control ranks by relevance alone; both learn from what users click. If users are split,
both arms read the same evidence: treatment pays for finding the item, control profits from it. If
queries are split, each arm lives on what it has found itself (compare arXiv 2305.07764).

`python -m benchmarks.exploration_split` compares both with the truth, the difference between two
worlds that explore everywhere and nowhere; a number after it is another seed.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ebrank
from ebrank import BehaviorStats, Dataset, EBRanker
from ebrank.equations import relevance_probability
from ebrank.statistics.sequential import Interval, Moments, difference
from ebrank.typing import Floats, Ints
from examples.new_item import HISTORY, SHOWN, USERS, bm25_history, clicks, new_items

LISTS = 400  # per query
QUERIES = 400
SPLITS = 2000

console = Console()


class Worlds(NamedTuple):
    """What is the same in every design: a dataset, its past, and the two arms."""

    data: Dataset
    relevance: Floats
    history: BehaviorStats
    arms: tuple[EBRanker, EBRanker]


def main(seed: int = 1) -> None:
    """Print what each design measures, beside the truth."""
    worlds = prepared(seed)
    queries = list(new_items(worlds.data))[:QUERIES]
    shape, rng = (len(queries), LISTS), np.random.default_rng([seed, 1])
    arms = np.zeros(shape, np.int64), np.ones(shape, np.int64), rng.integers(0, 2, shape)
    nowhere, everywhere, users = (served(worlds, queries, arm, seed) for arm in arms)
    control = nowhere.mean()
    truth = everywhere.mean() - control
    split = [by_queries(nowhere, everywhere, rng) for _ in range(SPLITS)]
    covered = np.mean([found.low <= truth <= found.high for found in split])
    table = Table(title="What exploration adds to clicks per list", expand=False)
    for column in ("measured by", "difference", "95 % interval"):
        table.add_column(column, justify="left" if column == "measured by" else "right")
    table.add_row("truth", f"{truth / control:+.1%}", "")
    for name, found in (
        ("split of users", by_lists(users, arms[2])),
        (f"mean of {SPLITS:,} splits of queries", Interval(*np.mean(split, axis=0).tolist())),
    ):
        estimate, low, high = (end / control for end in found)
        table.add_row(name, f"{estimate:+.1%}", f"{low:+.1%} to {high:+.1%}")
    console.print(table)
    console.print(
        f"Intervals of splits of queries cover the truth in {covered:.1%}. {len(queries)} queries, "
        f"{LISTS} lists each after {HISTORY} by BM25; expected clicks of lists of {SHOWN} relative "
        f"to control's {control:.2f}; seed {seed}."
    )


def prepared(seed: int) -> Worlds:
    """Return a past made by BM25, and two rankers that have learned the same prior from it."""
    data = ebrank.load("mq2007-like", seed=seed)
    relevance = relevance_probability(data.labels.astype(np.float64), data.max_label)
    history = bm25_history(data, relevance, absent=new_items(data))
    train = data.rows_in("train")
    control, treatment = (
        EBRanker(policy, examination=USERS).fit(data.features[train], history[train])
        for policy in ("ebrank:estimator=exposure,bonus=none", "ebrank:estimator=exposure")
    )
    return Worlds(data, relevance, history, (control, treatment))


def served(worlds: Worlds, queries: list[int], arms: Ints, seed: int) -> Floats:
    """Serve lists in turn by the rankers of their arms, which share the evidence of a query.

    Return the clicks that users make on average on each, shape (queries, lists).
    """
    p = USERS(np.arange(1, SHOWN + 1))
    expected = np.zeros(arms.shape)
    quiet = not console.is_terminal
    for place, query in enumerate(track(queries, console=console, transient=True, disable=quiet)):
        rows = worlds.data.rows_of(query)
        relevance = worlds.relevance[rows]
        stats = BehaviorStats(worlds.history[rows].counts.copy())
        priors = [ranker.prior(worlds.data.features[rows]) for ranker in worlds.arms]
        rng = np.random.default_rng([seed, 0, query])
        for user, arm in enumerate(arms[place]):
            order = worlds.arms[arm].ranked(priors[arm], stats).order[:SHOWN]
            expected[place, user] = p[: len(order)] @ relevance[order]
            stats.record(order, clicks(order, relevance, rng))
    return expected


def by_lists(expected: Floats, arms: Ints) -> Interval:
    """Return treatment minus control if every list is another user's."""
    return difference(*(Moments.of(expected[arms == arm]) for arm in (1, 0)), looks="once")


def by_queries(nowhere: Floats, everywhere: Floats, rng: np.random.Generator) -> Interval:
    """Return treatment minus control of a random split of queries.

    They share no evidence, so a query's lists are those of the world of its arm. Queries differ far
    more than arms do; each is compared with its past, when lists were like control's first.
    """
    treated = rng.permutation(len(nowhere)) % 2 == 1
    before = nowhere[:, 0]
    arms = (everywhere.mean(axis=1) - before)[treated], (nowhere.mean(axis=1) - before)[~treated]
    return difference(*map(Moments.of, arms), looks="once")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
