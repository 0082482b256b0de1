"""The summary at the top of the page: what was simulated, and what came out.

It reads how each ranker did from Table 2, and shows the few that a reader looks for first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from ebrank.experiments.document import DatasetRecord, Document
from ebrank.experiments.exhibits.table2 import CLICKS_AS_FEATURE, HINGES, better_than
from ebrank.experiments.exhibits.waiting import SHOWN, SOON
from ebrank.experiments.framework.entrants import (
    AUTO,
    CONCATENATING,
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    OURS,
    PAPER,
    UCBRANK,
    Entrant,
    entrant_of,
    twin,
)
from ebrank.experiments.framework.figures import Figure
from ebrank.experiments.framework.measures import MEASURES, ndcg_at
from ebrank.experiments.framework.numbers import number
from ebrank.experiments.framework.outcome import Cell, Column, Finding, Row, Table
from ebrank.parameters import listed
from ebrank.report.figures.render import inline_panels
from ebrank.report.ledger import tally

COLD, WARM, CUM, RUN = TITLES = tuple(measure.title for measure in MEASURES)
MEASURED = (
    "Cold-NDCG judges the last model as if nobody had clicked, Warm-NDCG with the clicks; Cum-NDCG "
    "sums up the lists that users saw, the later ones with more weight; Run-NDCG is their plain "
    "mean."
)

BIAS = (
    "Exploitation bias: a ranker that has clicks as a feature learns to trust them; new items have "
    "none, and so they stay buried, however good they are."
)

ALWAYS = ("bm25", CLICKS_AS_FEATURE, UCBRANK, *OURS)
CAPTION = (
    "Some rows of the table of all rankers, with its marks. Bold is the best of the rows here. Of "
    "the other rankers with clicks as a feature, only the best by Cum-NDCG is here."
)
VERDICT_OF_LOSS = {
    "confirmed": "A loss is confirmed for",
    "undecided": "It is undecided for",
    "contradicted": "It is contradicted for",
}
RIVALS = (UCBRANK, CLICKS_AS_FEATURE)
"""What `auto` is held against: who finds all that is new, and who buries it."""
MENTIONED = (AUTO, EBRANK, EXPOSURE, *RIVALS)
"""The rankers whose waits and lists are mentioned."""
SHOWN_SOON = Column(f"by {SOON} sessions", SHOWN)


@dataclass(frozen=True)
class Summary:
    """One dataset's results: plots, a few sentences, and a short table."""

    id: str
    name: str
    panels: Sequence[str]
    table: Table | None
    sentences: Sequence[str]


def summaries(document: Document) -> list[Summary]:
    """Return a summary for each dataset that has anything to show."""
    made = []
    for place, (data, by_key) in enumerate(_standings(document)):
        chosen = headline(by_key)
        styles = {standing.entrant.style for standing in chosen}
        panels = _panels(data.figures, styles, f"summary-{place}")
        if panels or chosen:
            table = headline_table(chosen, data.reference) if chosen else None
            made.append(
                Summary(f"summary-{place}", data.name, panels, table, sentences(data, by_key))
            )
    return made


def title(document: Document) -> str:
    """Return the result in a sentence, or what was reproduced."""
    names = ", ".join(data.name for data in document.datasets)
    ours = [each for data in document.datasets for each in data.findings if each.ours]
    about_auto = f"EBRank auto, with nothing to tune, on {names}: {tally(ours)}" if ours else ""
    return result(_standings(document)) or about_auto or f"EBRank reproduced: {names}"


def in_short(document: Document) -> list[str]:
    """Return what became of new items, and at what price, on each dataset."""
    several = len(document.datasets) > 1
    return [
        f"{data.name}: {text}" if several else text
        for data, own in _standings(document)
        for text in (*waits(_shown_soon(data)), *lists(own, data.findings))
    ]


def measures(document: Document) -> str:
    """Return what is measured, in words."""
    cutoffs, shown = (document.config.get(name) for name in ("cutoffs", "list_length"))
    which = ndcg_at(cutoffs[0], shown) if cutoffs and shown else "NDCG"
    return f"{MEASURED} The tables show {which} on test queries."


def _standings(document: Document) -> list[tuple[DatasetRecord, dict[str, Standing]]]:
    table2 = next((table for table in document.tables if table.name == "table2"), None)
    return [(data, standings(table2, data)) for data in document.datasets]


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


def _panels(figures: Sequence[Figure], styles: Collection[str], prefix: str) -> list[str]:
    """Return all measures over time of some rankers; of all if `styles` is empty."""
    over_time = (figure for figure in figures if figure.name.partition("-")[0] == "time")
    figure = next(over_time, None)
    if figure is None:
        return []
    drawn = tuple(
        replace(
            panel,
            series=tuple(series for series in panel.series if not styles or series.style in styles),
        )
        for panel in figure.panels
    )
    return inline_panels(replace(figure, panels=drawn), prefix)


# --- standings ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """How an entrant did on one dataset: a cell for each measure.

    Attributes:
        published: the figures to compare ours with, by measure, if there are any.
    """

    entrant: Entrant
    cells: Mapping[str, Cell]
    published: Mapping[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its label, with the setting where the label alone is ambiguous."""
        return self.entrant.name

    def value(self, measure: str) -> float:
        """Return the mean over trials."""
        value = self.cells[measure].value
        assert value is not None
        return value


def standings(table: Table | None, data: DatasetRecord) -> dict[str, Standing]:
    """Return how every entrant did on a dataset, by key; empty without a Table 2."""
    if table is None:
        return {}
    dataset, published = data.name, _published(data)
    columns = {
        column.title: place for place, column in enumerate(table.columns) if column.group == dataset
    }
    standings = {}
    for entrant, row in _rows(table, ENTRANTS):
        cells = _cells(row, columns)
        if len(cells) == len(TITLES):
            theirs = published.get((entrant.label, entrant.setting), {})
            standings[entrant.key] = Standing(entrant, cells, {} if entrant.apart else theirs)
    return standings


def _rows(table: Table, entrants: Sequence[Entrant]) -> Iterator[tuple[Entrant, Row]]:
    """Yield the entrants that a table has, each with its row."""
    rows = {(row.cells[0], row.group): row for row in table.rows}
    for entrant in entrants:
        if (entrant.label, entrant.heading) in rows:
            yield entrant, rows[entrant.label, entrant.heading]


def _published(data: DatasetRecord) -> dict[tuple[str, str], dict[str, float]]:
    """Return the published figures by label and setting, then by measure."""
    figures: dict[tuple[str, str], dict[str, float]] = {}
    for entry in (entry for section in data.ledger for entry in section.entries):
        if entry.group and entry.reference is not None:
            figures.setdefault((entry.name, entry.group), {})[entry.figure] = entry.reference
    return figures


def headline(standings: Mapping[str, Standing]) -> list[Standing]:
    """Return the entrants that a reader looks for first, in the order of the table."""
    others = [
        standings[entrant.key]
        for entrant in PAPER
        if entrant.key in standings and entrant.key not in ALWAYS and entrant.group == "with"
    ]
    best = max(others, key=lambda standing: standing.value(CUM), default=None)
    return [standing for key, standing in standings.items() if key in ALWAYS or standing is best]


def headline_table(chosen: Sequence[Standing], reference: str = "") -> Table:
    """Return the figures of some entrants beside published ones; the best are bold."""
    best = {measure: max(standing.value(measure) for standing in chosen) for measure in TITLES}
    published = {measure for standing in chosen for measure in standing.published}
    rows = []
    for standing in chosen:
        cells: list[Cell | str] = [standing.name]
        for measure in TITLES:
            cell = standing.cells[measure]
            cells.append(replace(cell, best=standing.value(measure) == best[measure]))
            if measure in published:
                cells.append(Cell(standing.published.get(measure), digits=cell.digits))
        entrant = standing.entrant
        rows.append(Row(tuple(cells), apart=entrant.apart, focus=entrant.key == EBRANK))
    columns = [Column("ranker")]
    for measure in TITLES:
        beside = [Column("ours", measure), Column(reference, measure)]
        columns += beside if measure in published else [Column(measure)]
    return Table("headline", "Some rankers", CAPTION, tuple(columns), tuple(rows))


def _cells(row: Row, columns: Mapping[str, int]) -> dict[str, Cell]:
    """Return the measures that a row has."""
    cells = {title: row.cells[columns[title]] for title in TITLES if title in columns}
    return {
        title: cell
        for title, cell in cells.items()
        if isinstance(cell, Cell) and cell.value is not None
    }


# --- sentences -----------------------------------------------------------------------------------


def sentences(data: DatasetRecord, standings: Mapping[str, Standing]) -> list[str]:
    """Return the results on a dataset: who waits, what users saw, who is first, what is lost."""
    return [
        *waits(_shown_soon(data)),
        *lists(standings, data.findings),
        *leaders(standings),
        *concatenation(standings, data.findings),
    ]


def result(datasets: Sequence[tuple[DatasetRecord, Mapping[str, Standing]]]) -> str:
    """Return the result in one sentence, for the title; "" if rankers were not compared.

    It is what became of new items, where that is known of one dataset. Otherwise the measure is
    Cum-NDCG, what users saw; the loss is the largest from clicks as a feature that the test
    confirms.
    """
    compared = [(data, own) for data, own in datasets if len(_paper(own)) > 1]
    if not compared:
        return ""
    if len(compared) == 1 and (words := found(*compared[0])):
        return words
    first = [max(_paper(own), key=lambda standing: standing.value(CUM)) for _, own in compared]
    sure = [standing for standing in first if "†" in standing.cells[CUM].marks]
    if len(compared) > 1:
        leads = [standing for standing in sure if standing.entrant.key == EBRANK]
        text = f"EBRank leads significantly on {len(leads)} of {len(compared)} datasets"
    else:
        ((data, _),) = compared
        text = f"{first[0].name} leads on {data.name}{'' if sure else ', not significantly'}"
    losses = [loss for data, own in compared for loss in _confirmed_losses(data.findings, own)]
    if losses and max(losses) > 0:
        text += f"; clicks as a feature cost new items up to {_percent(max(losses))} of their NDCG"
    return text


def found(data: DatasetRecord, standings: Mapping[str, Standing]) -> str:
    """Return how many new items users saw soon, and at what price; "" if either is not known."""
    shares, verdicts = _shown_soon(data), _verdicts(data.findings)
    if not {AUTO, *RIVALS} <= shares.keys() & standings.keys():
        return ""
    lost = 1 - standings[UCBRANK].value(RUN) / standings[AUTO].value(RUN)
    price = {
        "confirmed": f"at the price of lists that are {_percent(lost)} worse",
        "contradicted": f"in lists that are {_percent(-lost)} better",
    }.get(verdicts.get(better_than(UCBRANK), ""), "and its lists do not differ significantly")
    shown = {key: _percent(shares[key]) for key in (AUTO, *RIVALS)}
    return (
        f"EBRank auto shows {shown[AUTO]} of the good new items within {SOON} searches, a ranker "
        f"with clicks as a feature {shown[CLICKS_AS_FEATURE]}; UCBRank shows {shown[UCBRANK]}, "
        f"{price}"
    )


def _confirmed_losses(
    findings: Sequence[Finding], standings: Mapping[str, Standing]
) -> Iterator[float]:
    """Yield the shares of Cold-NDCG that clicks as a feature cost for sure."""
    sure = {finding.name for finding in findings if finding.verdict == "confirmed"}
    for concate, none in _twins(standings):
        if f"exploitation-bias-{concate.entrant.style}" in sure:
            yield 1 - concate.value(COLD) / none.value(COLD)


def _paper(standings: Mapping[str, Standing]) -> list[Standing]:
    return [standings[entrant.key] for entrant in PAPER if entrant.key in standings]


def _twins(standings: Mapping[str, Standing]) -> list[tuple[Standing, Standing]]:
    """Return the rankers with clicks as a feature, each with its twin without."""
    pairs = ((entrant.key, twin(entrant)) for entrant in CONCATENATING)
    return [
        (standings[key], standings[other.key])
        for key, other in pairs
        if other is not None and key in standings and other.key in standings
    ]


def leaders(standings: Mapping[str, Standing]) -> Iterator[str]:
    """Yield who is first among the paper's rankers, how far ahead, and whether significantly."""
    paper = _paper(standings)
    if len(paper) < 2:
        return
    for measure in (WARM, CUM):
        first, second, *_ = sorted(paper, key=lambda standing: -standing.value(measure))
        sure = "" if "†" in first.cells[measure].marks else "not "
        ahead = number(first.value(measure) - second.value(measure), first.cells[measure].digits)
        yield (
            f"Of the paper's rankers, {first.name} is first in {measure} with "
            f"{_value(first, measure)}, {ahead} ahead of {second.name}; it is {sure}significantly "
            "ahead of all of them."
        )


def concatenation(standings: Mapping[str, Standing], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield what clicks as a feature do to the ranking of items without clicks."""
    pairs = _twins(standings)
    if not pairs:
        return
    changes = [concate.value(COLD) - none.value(COLD) for concate, none in pairs]
    worst, other = pairs[changes.index(min(changes))]
    digits = worst.cells[COLD].digits
    text = (
        f"Clicks as a feature change {COLD} by "
        f"{number(fmean(changes), digits, signed=True)} on average over {len(pairs)} "
        f"rankers, at worst from {_value(other, COLD)} to {_value(worst, COLD)} "
        f"({worst.entrant.label})."
    )
    checked = [finding for finding in findings if finding.name.startswith("exploitation-bias-")]
    for verdict, words in VERDICT_OF_LOSS.items():
        who = [finding.subject for finding in checked if finding.verdict == verdict]
        if who:
            text += f" {words} {listed(who)}."
    yield f"{text} {HINGES}."


def waits(shares: Mapping[str, float]) -> Iterator[str]:
    """Yield how many of the new relevant items were shown soon, most first."""
    if shares:
        most = sorted(shares, key=lambda key: -shares[key])
        texts = [f"{_percent(shares[key])} with {entrant_of(key).name}" for key in most]
        yield (
            "New items found: of the relevant items that are new, users see this many within "
            f"{SOON} searches for their query: {', '.join(texts)}."
        )


def lists(standings: Mapping[str, Standing], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield how good the lists were that users saw, and whether those of `auto` are better."""
    if AUTO not in standings:
        return
    mentioned = [standings[key] for key in MENTIONED if key in standings]
    most = sorted(mentioned, key=lambda standing: -standing.value(RUN))
    text = f"Price: the lists that users saw have a mean NDCG ({RUN}; 1 is perfect) of "
    text += ", ".join(f"{_value(standing, RUN)} with {standing.name}" for standing in most)
    verdicts = _verdicts(findings)
    worse = [key for key in RIVALS if verdicts.get(better_than(key)) == "confirmed"]
    if worse:
        names = listed([standings[key].name for key in worse])
        text += f". {standings[AUTO].name} is significantly ahead of {names}"
    yield f"{text}."


def _shown_soon(data: DatasetRecord) -> dict[str, float]:
    """Return the share of new items shown within some sessions, by key, if known."""
    shares = {}
    for table in (table for table in data.tables if SHOWN_SOON in table.columns):
        column = table.columns.index(SHOWN_SOON)
        for entrant, row in _rows(table, [entrant_of(key) for key in MENTIONED]):
            cell = row.cells[column]
            if isinstance(cell, Cell) and cell.value is not None:
                shares[entrant.key] = cell.value
    return shares


def _verdicts(findings: Sequence[Finding]) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in findings}


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", "\N{NO-BREAK SPACE}%")


def _value(standing: Standing, measure: str) -> str:
    return number(standing.value(measure), standing.cells[measure].digits)
