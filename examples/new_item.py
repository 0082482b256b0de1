"""Does a good new item get found? Watch four rankers serve the same simulated users.

Users search the embedded dataset. So far every list was made by BM25; then, for each test query, a
relevant item arrives that nobody has ever seen. `python examples/new_item.py` shows how soon each
ranker puts it among the top five, and `python examples/new_item.py found.svg` draws it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import ebrank
from ebrank import BehaviorStats, Dataset, EBRanker, Examination
from ebrank.equations import relevance_probability
from ebrank.typing import Bools, Features, Floats, Ints

SHOWN = 5  # users see five results
HISTORY = 20  # BM25 sessions per query before the new item arrives
CHECKPOINTS = (0, 5, 10, 20, 50)  # sessions since its arrival
USERS = Examination(cutoff=SHOWN)

Rank: TypeAlias = Callable[[Features, BehaviorStats], Ints]

console = Console()


def main() -> None:
    """Fit a prior on the train queries, then serve the test queries with each ranker."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("picture", nargs="?", help="a file to draw it in, such as found.svg")
    picture = parser.parse_args().picture

    data = ebrank.load("mq2007-like", scale=0.25)
    relevance = relevance_probability(data.labels.astype(np.float64), data.max_label)
    arrivals = new_items(data)
    history = bm25_history(data, relevance, absent=arrivals)
    train = data.rows_in("train")
    features_only, paper, auto = (
        EBRanker(policy, examination=USERS).fit(data.features[train], history[train])
        for policy in ("auto:part=prior", "ebrank:estimator=exposure", "auto")
    )
    rankers: dict[str, Rank] = {
        "clicks alone": lambda _, stats: by_click_rate(stats),
        "features only": lambda rows, stats: features_only.rank(rows, stats, k=SHOWN).order,
        "EBRank (paper)": lambda rows, stats: paper.rank(rows, stats, k=SHOWN).order,
        "EBRank auto": lambda rows, stats: auto.rank(rows, stats, k=SHOWN).order,
    }
    shares: dict[str, Floats] = {}
    for name, rank in rankers.items():
        listed = [
            list(found(data, relevance, history, query, item, rank))
            for query, item in progress(arrivals, name)
        ]
        shares[name] = np.mean(listed, axis=0)
    console.print(table_of(shares))
    console.print(f"{len(arrivals)} test queries; columns count user sessions since the arrival.\n")

    query, item = next(iter(arrivals.items()))
    rows = data.rows_of(query)
    why = auto.rank(data.features[rows], history[rows]).explain(item - rows.start)
    console.print(f"Why EBRank auto tries an item nobody has clicked: {why}")

    if picture is not None:
        draw(shares, picture)


def table_of(shares: dict[str, Floats]) -> Table:
    """Return how often the new item was listed, at some checkpoints."""
    table = Table(title=f"A relevant new item is among the top {SHOWN} of its query", expand=False)
    table.add_column("ranked by")
    for sessions in CHECKPOINTS:
        table.add_column(f"after {sessions}" if sessions else "on arrival", justify="right")
    for name, listed in shares.items():
        table.add_row(name, *(f"{listed[sessions]:.0%}" for sessions in CHECKPOINTS))
    return table


def draw(shares: dict[str, Floats], path: str) -> None:
    """Draw how often the new item was listed, session by session."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    looks = dict(
        zip(
            shares,
            (("#8a8f98", ":"), ("#6e6e6e", "-."), ("#c4161c", "--"), ("#0b7a4b", "-")),
            strict=True,
        )
    )
    with rc_context({"svg.hashsalt": "new item", "svg.fonttype": "none", "font.size": 11}):
        figure = Figure(figsize=(7.6, 3.6), layout="constrained")
        axes = figure.subplots()
        for name, listed in shares.items():
            color, style = looks[name]
            axes.plot(100 * listed, style, color=color, linewidth=2.5)
            axes.annotate(
                f"{name}  {listed[-1]:.0%}",
                (len(listed) - 1, 100 * listed[-1]),
                (6, 0),
                textcoords="offset points",
                va="center",
                color=color,
                weight="bold",
            )
        axes.set(xlim=(0, max(CHECKPOINTS)), ylim=(0, 100))
        axes.set_xlabel("user sessions since the item arrived")
        axes.set_yticks([0, 25, 50, 75, 100], ["0%", "25%", "50%", "75%", "100%"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", alpha=0.25)
        title = f"A good new item arrives. Is it among the {SHOWN} results that users see?"
        axes.set_title(title, loc="left", weight="bold")
        figure.savefig(path, metadata={"Date": None} if path.endswith(".svg") else None, dpi=150)


def progress(arrivals: dict[int, int], name: str) -> Iterable[tuple[int, int]]:
    """Return the queries and their new items, with a bar where someone watches."""
    quiet = not console.is_terminal
    return track(arrivals.items(), name, console=console, transient=True, disable=quiet)


def new_items(data: Dataset) -> dict[int, int]:
    """Return the row of a relevant item for each test query that has one: it will arrive late."""
    arrivals = {}
    for query in data.queries_in("test").tolist():
        rows = data.rows_of(query)
        best = rows.start + int(np.argmax(data.labels[rows]))
        if data.labels[best] > 0:
            arrivals[query] = best
    return arrivals


def bm25_history(data: Dataset, relevance: Floats, absent: dict[int, int]) -> BehaviorStats:
    """Return what users did with the lists BM25 made of all items but the absent ones."""
    stats = BehaviorStats.zeros(data.n_rows)
    for query in range(data.n_queries):
        rows = data.rows_of(query)
        scores = data.baseline[rows].copy()
        if query in absent:
            scores[absent[query] - rows.start] = -np.inf
        order = np.argsort(-scores, kind="stable")[:SHOWN]
        rng = np.random.default_rng([1, query])
        for _ in range(HISTORY):
            stats[rows].record(order, clicks(order, relevance[rows], rng))
    return stats


def clicks(order: Ints, relevance: Floats, rng: np.random.Generator) -> Bools:
    """Return what one user clicks: what is examined and found relevant."""
    return rng.random(len(order)) < USERS(np.arange(1, len(order) + 1)) * relevance[order]


def by_click_rate(stats: BehaviorStats) -> Ints:
    """Return the items most clicked per showing, debiased; an unseen item has no clicks."""
    sums = stats.sums(USERS)
    rate = sums.weighted_clicks / np.maximum(sums.shown, 1)
    return np.argsort(-rate, kind="stable")[:SHOWN]


def found(
    data: Dataset, relevance: Floats, history: BehaviorStats, query: int, item: int, rank: Rank
) -> Iterator[bool]:
    """Yield for each session whether the new item stands in the list the user sees."""
    rows = data.rows_of(query)
    stats = BehaviorStats(history[rows].counts.copy())  # each ranker starts afresh
    rng = np.random.default_rng([2, query])
    for _ in range(max(CHECKPOINTS) + 1):
        order = rank(data.features[rows], stats)
        yield bool(np.any(order == item - rows.start))
        stats.record(order, clicks(order, relevance[rows], rng))


if __name__ == "__main__":
    main()
