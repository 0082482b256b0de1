"""Table 2: how well every ranker ranks, in the paper's three feature settings.

The best of a group is bold. `*` says that it is significantly better than all others of its group,
`†` than all others of the table. Concate and non-Concate form one group, as in the paper. Rows set
apart are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from ebrank.experiments.framework.entrants import (
    CONCATENATING,
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    NON_CONCATE,
    PAPER,
    UCBRANK,
    Entrant,
    entrant_of,
    twin,
)
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    COLD,
    CUM,
    MEASURES,
    WARM,
    Measure,
    cells,
    ndcg_at,
)
from ebrank.experiments.framework.numbers import p_text
from ebrank.experiments.framework.outcome import Cell, Column, Finding, Outcome, Row, Table
from ebrank.experiments.framework.significance import lead, pairwise
from ebrank.experiments.ledger.variants import variants
from ebrank.simulation.result import Result

ByKey: TypeAlias = Mapping[str, Result]

BIAS = "Clicks as a feature cost Cold-NDCG"
DEGENERATION = "Clicks as a feature make CFTopK worse"
COLD_KEPT = "Rankers made for new items keep their Cold-NDCG"
FIRST = "EBRank leads"
KEPT = 0.03
"""A Cold-NDCG no further than this below that of CFTopK without behavior counts as kept."""
HINGES = (
    "What clicks as a feature do to Cold-NDCG hinges on x^b = c/E. With x^b = C/n, as the paper "
    "writes it, x^b is what the counterfactual rankers are fitted to, and they lose next to none "
    "of their Cold-NDCG"
)
"""Belongs wherever the loss of Cold-NDCG is shown."""
MARKS = (
    "The best of a group is bold; W/-Behav (Concate) and W/-Behav (non-Concate) are one group. * : "
    "significantly better than all others of its group; † : than all others of the table (Fisher's "
    "randomization test over test queries, Holm-adjusted p < .05). EBRank (exposure) and the last "
    "rows are not in the paper's table and take part in no comparison."
)


def runs(setup: Setup) -> list[Run]:
    """Return all entrants, and the variants that the ledger shows."""
    entrants = [setup.run(entrant.key) for entrant in entrants_of(setup)]
    return entrants + [variant.run(setup) for variant in variants(setup.dataset.origin)]


def entrants_of(setup: Setup) -> tuple[Entrant, ...]:
    """Return the rankers that have a row: the paper's, ours, and the user's."""
    known = {entrant.key for entrant in ENTRANTS}
    own = tuple(
        Entrant(key, key, NON_CONCATE, key, apart=True) for key in setup.also if key not in known
    )
    return (*ENTRANTS, *own)


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the table, and which of the paper's findings hold."""
    by_key = {entrant.key: results[setup.run(entrant.key)] for entrant in entrants_of(setup)}
    return Outcome(tables=(table(setup, by_key),), findings=tuple(findings(by_key)))


def table(setup: Setup, results: ByKey) -> Table:
    """Return the table of one dataset."""
    columns = [Column(measure.title, setup.name) for measure in MEASURES]
    marked = [marks(results, measure) for measure in MEASURES]
    rows = []
    for entrant in entrants_of(setup):
        row: list[Cell | str] = [entrant.label]
        for index, own in enumerate(cells(results[entrant.key])):
            mark = marked[index].get(entrant.key)
            row.append(own if mark is None else replace(own, best=True, marks=mark))
        rows.append(Row(tuple(row), entrant.heading, entrant.apart, entrant.key == EBRANK))
    measured = ndcg_at(setup.config.cutoffs[0], setup.config.list_length)
    return Table(
        "table2",
        "Ranking performance",
        f"{measured} on test queries, mean of the trials. {MARKS} {HINGES} (variants in the "
        "ledger).",
        (Column("ranker"), *columns),
        tuple(rows),
    )


def marks(results: ByKey, measure: Measure) -> dict[str, str]:
    """Return the marks of the best of each group, by key; "" where its lead is not significant."""
    marked = {}
    for group in ("without", "with"):
        members = [entrant for entrant in PAPER if entrant.group == group]
        best = _best(results, members, measure)
        ahead = lead(results[best.key], _labeled(results, members, best), measure)
        marked[best.key] = "*" if ahead.significant else ""
    best = _best(results, PAPER, measure)
    if lead(results[best.key], _labeled(results, PAPER, best), measure).significant:
        marked[best.key] += "†"
    return marked


def _best(results: ByKey, members: list[Entrant] | tuple[Entrant, ...], by: Measure) -> Entrant:
    return max(members, key=lambda entrant: by.mean(results[entrant.key]))


def _labeled(
    results: ByKey, members: list[Entrant] | tuple[Entrant, ...], but: Entrant
) -> dict[str, Result]:
    """Return the results of all but one, by name."""
    return {entrant.name: results[entrant.key] for entrant in members if entrant is not but}


def findings(results: ByKey) -> Iterator[Finding]:
    """Yield checks of what the paper says about its table (Sec. 5.2)."""
    yield from exploitation_bias(results)
    yield from degeneration(results)
    yield from kept_cold(results)
    for key in (EBRANK, EXPOSURE):
        for measure in (WARM, CUM):
            yield first(results, key, measure)


def exploitation_bias(results: ByKey) -> Iterator[Finding]:
    """Yield whether each ranker is worse at cold items with clicks as a feature than without."""
    twins = {entrant: other for entrant in CONCATENATING if (other := twin(entrant)) is not None}
    pairs = {
        entrant.key: (results[other.key], results[entrant.key]) for entrant, other in twins.items()
    }
    compared = pairwise(pairs, COLD)
    for entrant, other in twins.items():
        loss = replace(compared[entrant.key], whole=COLD.mean(results[other.key]))
        yield Finding(
            f"exploitation-bias-{entrant.style}",
            f"{entrant.label} has a lower Cold-NDCG with clicks as a feature than without",
            loss.verdict,
            f"adjusted {p_text(loss.p_value)}",
            BIAS,
            entrant.label,
            effect=loss.effect(COLD, f"{COLD.title} lost"),
        )


def degeneration(results: ByKey) -> Iterator[Finding]:
    """Yield whether clicks as a feature make CFTopK worse, even where there are clicks."""
    without, with_clicks = (results[f"cftopk:features={which}"] for which in ("none", "concate"))
    for measure in (WARM, CUM):
        loss = pairwise({"": (without, with_clicks)}, measure)[""]
        loss = replace(loss, whole=measure.mean(without))
        yield Finding(
            f"cftopk-degenerates-{measure.name}",
            f"CFTopK has a lower {measure.title} with clicks as a feature than without",
            loss.verdict,
            p_text(loss.p_value),
            DEGENERATION,
            measure.title,
            effect=loss.effect(measure, f"{measure.title} lost"),
        )


def kept_cold(results: ByKey) -> Iterator[Finding]:
    """Yield whether rankers made for new items rank them as well as CFTopK without clicks."""
    without = results["cftopk:features=none"]
    pairs = {key: (results[key], without) for key in ("prior", UCBRANK, EBRANK, EXPOSURE)}
    for key, gap in pairwise(pairs, COLD, border=-KEPT).items():
        entrant = entrant_of(key)
        yield Finding(
            f"cold-kept-{entrant.style}",
            f"{entrant.label} keeps its Cold-NDCG: at most {COLD.text(KEPT)} below CFTopK without "
            "clicks as a feature",
            gap.verdict,
            f"adjusted {p_text(gap.p_value)}",
            COLD_KEPT,
            entrant.label,
            effect=gap.effect(COLD),
        )


def first(results: ByKey, key: str, measure: Measure) -> Finding:
    """Return whether EBRank leads with one of its estimators; the other one is not a rival."""
    entrant = entrant_of(key)
    rivals = [other for other in PAPER if other.key != EBRANK]
    ahead = lead(results[key], _labeled(results, rivals, entrant), measure)
    return Finding(
        f"{entrant.style}-first-{measure.name}",
        f"{entrant.label} leads all other methods in {measure.title}",
        ahead.verdict,
        str(ahead),
        FIRST,
        f"{entrant.label}, {measure.title}",
        effect=ahead.effect,
    )


EXPERIMENT = Experiment("table2", "Table 2: ranking performance", outcome, runs)
