"""The summary at the top of the page: what was simulated, and what came out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ebrank.experiments.document import DatasetRecord, Document
from ebrank.experiments.framework.entrants import EBRANK
from ebrank.experiments.framework.measures import ndcg_at
from ebrank.experiments.framework.outcome import Figure, Table
from ebrank.report.figures.render import inline_panels
from ebrank.report.findings import tally
from ebrank.report.page.dots import DotRow, dot_rows
from ebrank.report.page.sentences import listed, result, sentences
from ebrank.report.page.standings import (
    COLD,
    CUM,
    WARM,
    Standing,
    headline,
    headline_table,
    standings,
)

MEASURES = (
    "Cold-NDCG judges the last model as if nobody had clicked, Warm-NDCG with the clicks; Cum-NDCG "
    "sums up the lists that users saw, the later ones with more weight; Run-NDCG is their plain "
    "mean."
)

BIAS = (
    "Exploitation bias: a ranker that has clicks as a feature learns to trust them; new items have "
    "none, and so they stay buried, however good they are."
)


@dataclass(frozen=True)
class Summary:
    """One dataset's results: plots, a few sentences, a short table, and the same as dots."""

    id: str
    name: str
    panels: Sequence[str]
    table: Table | None
    sentences: Sequence[str]
    dots: Sequence[DotRow]
    reference: str


def summaries(document: Document) -> list[Summary]:
    """Return a summary for each dataset that has anything to show."""
    made = []
    for number, (data, by_key) in enumerate(_standings(document)):
        chosen = headline(by_key)
        styles = {standing.entrant.style for standing in chosen}
        panels = _panels(data.figures, styles, f"summary-{number}")
        if panels or chosen:
            table = headline_table(chosen, data.reference) if chosen else None
            dots = dot_rows(chosen, EBRANK) if chosen else []
            texts = sentences(data, by_key)
            made.append(
                Summary(f"summary-{number}", data.name, panels, table, texts, dots, _whose(data))
            )
    return made


def title(document: Document) -> str:
    """Return the result in a sentence, or what was reproduced."""
    names = ", ".join(data.name for data in document.datasets)
    ours = [each for data in document.datasets for each in data.findings if each.ours]
    about_auto = f"auto, with nothing to tune, on {names}: {tally(ours)}" if ours else ""
    return result(_standings(document)) or about_auto or f"EBRank reproduced: {names}"


def measures(document: Document) -> str:
    """Return what is measured, in words."""
    cutoffs, shown = (document.config.get(name) for name in ("cutoffs", "list_length"))
    which = ndcg_at(cutoffs[0], shown) if cutoffs and shown else "NDCG"
    return f"{MEASURES} The tables show {which} on test queries."


def _standings(document: Document) -> list[tuple[DatasetRecord, dict[str, Standing]]]:
    table2 = next((table for table in document.tables if table.name == "table2"), None)
    return [(data, standings(table2, data)) for data in document.datasets]


def _whose(data: DatasetRecord) -> str:
    """Return whose figures are beside ours, and on which dataset; "" if none."""
    if not data.reference:
        return ""
    return f"the {data.reference}'s on {data.stands_in_for or data.name}"


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
    """Return Cold-, Warm- and Cum-NDCG over time of some rankers; of all if `styles` is empty."""
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
        if panel.title in (COLD, WARM, CUM)
    )
    return inline_panels(replace(figure, panels=drawn), prefix)
