"""The summary at the top of the page: what was simulated, what users found, and at what price.

It reads this from the tables of waiting times and of performance; everything else stands below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ebrank.paper.document import DatasetRecord, Document
from ebrank.paper.exhibits.table2 import CLICKS_AS_FEATURE, better_than
from ebrank.paper.exhibits.waiting import SHOWN, SOON
from ebrank.paper.framework.entrants import AUTO, EBRANK, EXPOSURE, UCBRANK, entrant_of
from ebrank.paper.framework.figures import Figure
from ebrank.paper.framework.measures import RUN, ndcg_at
from ebrank.paper.framework.outcome import Cell, Column, Table
from ebrank.paper.report.figures.render import inline_panels
from ebrank.paper.report.ledger import tally
from ebrank.parameters import listed

MEASURED = (
    "Cold-NDCG judges the last model as if nobody had clicked, Warm-NDCG with the clicks; Cum-NDCG "
    "sums up the lists that users saw, the later ones with more weight; Run-NDCG is their plain "
    "mean."
)
BIAS = (
    "Exploitation bias: a ranker that has clicks as a feature learns to trust them; new items have "
    "none, and so they stay buried, however good they are."
)
RIVALS = (UCBRANK, CLICKS_AS_FEATURE)
"""What `auto` is held against: who finds all that is new, and who buries it."""
MENTIONED = (AUTO, EBRANK, EXPOSURE, *RIVALS)
"""The rankers whose waits and lists are mentioned."""
DRAWN = {entrant_of(key).style for key in ("bm25", *MENTIONED)}
SHOWN_SOON = Column(f"by {SOON} sessions", SHOWN)


@dataclass(frozen=True)
class Summary:
    """One dataset's results: plots and a few sentences."""

    id: str
    name: str
    panels: Sequence[str]
    sentences: Sequence[str]


def summaries(document: Document) -> list[Summary]:
    """Return a summary for each dataset that has anything to show."""
    made = [
        Summary(
            f"summary-{place}",
            data.name,
            _panels(data.figures, f"summary-{place}"),
            list(_sentences(document, data)),
        )
        for place, data in enumerate(document.datasets)
    ]
    return [each for each in made if each.panels or each.sentences]


def title(document: Document) -> str:
    """Return what became of new items on the only dataset, or what was reproduced."""
    if len(document.datasets) == 1 and (words := found(document, document.datasets[0])):
        return words
    names = ", ".join(data.name for data in document.datasets)
    ours = [each for data in document.datasets for each in data.findings if each.ours]
    if ours:
        return f"EBRank auto, with nothing to tune, on {names}: {tally(ours)}"
    return f"EBRank reproduced: {names}"


def found(document: Document, data: DatasetRecord) -> str:
    """Return how many new items users saw soon, and at what price; "" if either is not known."""
    shares, lists = _shown_soon(data), _run_ndcg(document, data)
    if not {AUTO, *RIVALS} <= shares.keys() & lists.keys():
        return ""
    lost = 1 - lists[UCBRANK] / lists[AUTO]
    verdict = _verdicts(data).get(better_than(UCBRANK), "")
    price = {
        "confirmed": f"at the price of lists that are {_percent(lost)} worse",
        "contradicted": f"in lists that are {_percent(-lost)} better",
    }.get(verdict, "and its lists do not differ significantly")
    shown = {key: _percent(shares[key]) for key in (AUTO, *RIVALS)}
    return (
        f"EBRank auto shows {shown[AUTO]} of the good new items within {SOON} searches, a ranker "
        f"with clicks as a feature {shown[CLICKS_AS_FEATURE]}; UCBRank shows {shown[UCBRANK]}, "
        f"{price}"
    )


def in_short(document: Document) -> list[str]:
    """Return what became of new items, and at what price, on each dataset."""
    several = len(document.datasets) > 1
    return [
        f"{data.name}: {text}" if several else text
        for data in document.datasets
        for text in _sentences(document, data)
    ]


def measures(document: Document) -> str:
    """Return what is measured, in words."""
    cutoffs, shown = (document.config.get(name) for name in ("cutoffs", "list_length"))
    which = ndcg_at(cutoffs[0], shown) if cutoffs and shown else "NDCG"
    return f"{MEASURED} The tables show {which} on test queries."


def simulated(document: Document) -> str:
    """Return what was simulated, in words."""
    if not document.datasets:
        return ""
    trials = "one trial" if document.trials == 1 else f"each of {document.trials} trials"
    served = [
        f"{data.sessions:,} sessions on {data.name} ({_size(data)})" for data in document.datasets
    ]
    text = f"In {trials}, every ranker served simulated users: {listed(served)}."
    config = document.config
    if "warmup_sessions" in config and "updates" in config:
        text += (
            f" BM25 had served each query {config['warmup_sessions']} times before. New items kept "
            f"entering; rankers learned from clicks, in {config['updates']} updates."
        )
    return text


def _size(data: DatasetRecord) -> str:
    each = " each" if data.folds else ""
    text = f"{data.queries:,} queries, {data.rows:,} items{each}"
    if data.stands_in_for is not None and data.stands_in_for != data.name:
        text += f"; synthetic, in place of {data.stands_in_for}"
    return text


def _panels(figures: Sequence[Figure], prefix: str) -> list[str]:
    """Return all measures over time of the rankers that a reader looks for first."""
    over_time = (figure for figure in figures if figure.name.partition("-")[0] == "time")
    figure = next(over_time, None)
    if figure is None:
        return []
    panels = tuple(
        replace(panel, series=tuple(each for each in panel.series if each.style in DRAWN))
        for panel in figure.panels
    )
    return inline_panels(replace(figure, panels=panels), prefix)


def _sentences(document: Document, data: DatasetRecord) -> Iterator[str]:
    """Yield how many of the new relevant items users saw, and how good their lists were."""
    if shares := _shown_soon(data):
        yield (
            "New items found: of the relevant items that are new, users see this many within "
            f"{SOON} searches for their query: "
            f"{_best_first(shares, {key: _percent(share) for key, share in shares.items()})}."
        )
    lists = _run_ndcg(document, data)
    if AUTO in lists:
        texts = {key: RUN.text(value) for key, value in lists.items()}
        verdicts = _verdicts(data)
        worse = [key for key in RIVALS if verdicts.get(better_than(key)) == "confirmed"]
        names = listed([entrant_of(key).name for key in worse])
        ahead = f". {entrant_of(AUTO).name} is significantly ahead of {names}" if worse else ""
        yield (
            f"Price: the lists that users saw have a mean NDCG ({RUN.title}; 1 is perfect) of "
            f"{_best_first(lists, texts)}{ahead}."
        )


def _best_first(values: Mapping[str, float], texts: Mapping[str, str]) -> str:
    keys = sorted(values, key=lambda key: -values[key])
    return ", ".join(f"{texts[key]} with {entrant_of(key).name}" for key in keys)


def _run_ndcg(document: Document, data: DatasetRecord) -> dict[str, float]:
    """Return the Run-NDCG of the rankers that are mentioned, by key, if known."""
    tables = [table for table in document.tables if table.name == "table2"]
    return _values(tables, Column(RUN.title, data.name))


def _shown_soon(data: DatasetRecord) -> dict[str, float]:
    """Return the share of new items shown within some sessions, by key, if known."""
    return _values(data.tables, SHOWN_SOON)


def _values(tables: Sequence[Table], column: Column) -> dict[str, float]:
    """Return a column's values for the rankers that are mentioned, by key."""
    values = {}
    for table in (table for table in tables if column in table.columns):
        cells = {
            (row.cells[0], row.group): row.cells[table.columns.index(column)] for row in table.rows
        }
        for entrant in map(entrant_of, MENTIONED):
            cell = cells.get((entrant.label, entrant.heading))
            if isinstance(cell, Cell) and cell.value is not None:
                values[entrant.key] = cell.value
    return values


def _verdicts(data: DatasetRecord) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in data.findings}


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")
