"""Table 2: how well every ranker ranks, in the paper's three feature settings.

The best of a group is bold. `*` says that it is significantly better than all others of its group,
`†` than all others of the table. Concate and non-Concate form one group, as in the paper. Rows set
apart are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ebrank.lab.simulation.result import Result
from ebrank.paper.framework import measures
from ebrank.paper.framework.display import Cell, Column, Display, Finding, Row, Table
from ebrank.paper.framework.entrants import (
    AUTO,
    CONCATENATING,
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    NON_CONCATE,
    OURS,
    PAPER,
    UCBRANK,
    Entrant,
    entrant_of,
    twin,
)
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Setup
from ebrank.paper.framework.measures import COLD, CUM, MEASURES, RUN, WARM, Measure
from ebrank.paper.framework.numbers import p_text
from ebrank.paper.framework.significance import lead, pairwise
from ebrank.paper.references import variants

ByKey: TypeAlias = Mapping[str, Result]

BIAS = "Clicks as a feature cost Cold-NDCG"
DEGENERATION = "Clicks as a feature make CFTopK worse"
COLD_KEPT = "Rankers made for new items keep their Cold-NDCG"
FIRST = "EBRank leads"
AUTO_FIRST = "EBRank auto leads the paper's methods"
CLICKS_AS_FEATURE = "cftopk:features=concate"
KEPT = 0.03
"""Cold-NDCG counts as kept if it is at most this far below CFTopK's without behavior."""
HINGES = (
    "What clicks as a feature do to Cold-NDCG hinges on x^b = c/E. With x^b = C/n, as the paper "
    "writes it, x^b is what the counterfactual rankers are fitted to, and they lose next to none "
    "of their Cold-NDCG"
)
MARKS = (
    "The best of a group is bold; W/-Behav (Concate) and W/-Behav (non-Concate) are one group. * : "
    "significantly better than all others of its group; † : than all others of the table (Fisher's "
    "randomization test over test queries, Holm-adjusted p < .05). EBRank (exposure), EBRank "
    "auto and the last rows are not in the paper's table and take part in no comparison of it."
)


def runs(setup: Setup) -> NamedRuns:
    """Return all entrants by key, and the variants that the ledger shows."""
    entrants = {entrant.key: setup.run(entrant.key) for entrant in entrants_of(setup)}
    return entrants | {each.name: each.run(setup) for each in variants(setup.dataset.origin)}


def entrants_of(setup: Setup) -> tuple[Entrant, ...]:
    """Return the rankers that have a row: the paper's, ours, and the user's."""
    keys = {entrant.key for entrant in ENTRANTS}
    own = tuple(
        Entrant(key, key, NON_CONCATE, key, apart=True) for key in setup.also if key not in keys
    )
    return (*ENTRANTS, *own)


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the table, and which of the paper's findings hold."""
    return Display(tables=(table(setup, results),), findings=tuple(findings(results)))


def table(setup: Setup, results: ByKey) -> Table:
    """Return the table of one dataset."""
    titles = (*(measure.title for measure in MEASURES), *measures.BY_LABELS.values())
    marked = [marks(results, measure) for measure in MEASURES]
    rows = []
    for entrant in entrants_of(setup):
        row: list[Cell | str] = [entrant.label]
        for index, own in enumerate(measures.cells(results[entrant.key])):
            mark = marked[index].get(entrant.key)
            row.append(own if mark is None else replace(own, best=True, marks=mark))
        row += measures.label_cells(results[entrant.key])
        rows.append(Row(tuple(row), entrant.heading, entrant.apart, entrant.key == EBRANK))
    measured = measures.ndcg_at(setup.config.cutoffs[0], setup.config.list_length)
    return Table(
        "table2",
        "Ranking performance",
        f"{measured} on test queries, {measures.mean_of(list(results.values()))}. "
        f"{measures.LABELS_CAPTION} {MARKS} {HINGES} (variants in the ledger).",
        (Column("ranker"), *map(Column, titles)),
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


def _best(results: ByKey, members: Sequence[Entrant], by: Measure) -> Entrant:
    return max(members, key=lambda entrant: by.mean(results[entrant.key]))


def _labeled(results: ByKey, members: Sequence[Entrant], but: Entrant) -> dict[str, Result]:
    """Return the results of all but one, by name."""
    return {entrant.name: results[entrant.key] for entrant in members if entrant is not but}


def findings(results: ByKey) -> Iterator[Finding]:
    """Yield checks of what the paper says about its table (Sec. 5.2), and of `auto` beside it."""
    yield from exploitation_bias(results)
    yield from degeneration(results)
    yield from kept_cold(results)
    for key in OURS:
        for measure in (WARM, CUM):
            yield first(results, key, measure)
    yield from better_lists(results)


def exploitation_bias(results: ByKey) -> Iterator[Finding]:
    """Yield whether each ranker is worse at cold items with clicks as a feature than without."""
    twins = {entrant: other for entrant in CONCATENATING if (other := twin(entrant)) is not None}
    pairs = {
        entrant: (results[other.key], results[entrant.key]) for entrant, other in twins.items()
    }
    for entrant, loss in pairwise(pairs, COLD).items():
        yield replace(loss, whole=COLD.mean(results[twins[entrant].key])).finding(
            f"exploitation-bias-{entrant.style}",
            f"{entrant.label} has a lower Cold-NDCG with clicks as a feature than without",
            COLD,
            BIAS,
            entrant.label,
            unit=f"{COLD.title} lost",
        )


def degeneration(results: ByKey) -> Iterator[Finding]:
    """Yield whether clicks as a feature make CFTopK worse, even where there are clicks."""
    without, with_clicks = (results[f"cftopk:features={which}"] for which in ("none", "concate"))
    for measure in (WARM, CUM):
        loss = pairwise({"": (without, with_clicks)}, measure)[""]
        yield replace(loss, whole=measure.mean(without)).finding(
            f"cftopk-degenerates-{measure.name}",
            f"CFTopK has a lower {measure.title} with clicks as a feature than without",
            measure,
            DEGENERATION,
            measure.title,
            p_text(loss.p_value),
            unit=f"{measure.title} lost",
        )


def kept_cold(results: ByKey) -> Iterator[Finding]:
    """Yield whether rankers made for new items rank them as well as CFTopK without clicks."""
    without = results["cftopk:features=none"]
    pairs = {key: (results[key], without) for key in ("prior", UCBRANK, EBRANK, EXPOSURE)}
    for key, gap in pairwise(pairs, COLD, border=-KEPT).items():
        entrant = entrant_of(key)
        yield gap.finding(
            f"cold-kept-{entrant.style}",
            f"{entrant.label} keeps its Cold-NDCG: at most {COLD.text(KEPT)} below CFTopK without "
            "clicks as a feature",
            COLD,
            COLD_KEPT,
            entrant.label,
        )


def first(results: ByKey, key: str, measure: Measure) -> Finding:
    """Return whether EBRank leads with one of its estimators, or `auto` does.

    EBRank's estimators are no rivals of each other, but both are rivals of `auto`.
    """
    entrant, ours = entrant_of(key), key == AUTO
    rivals = [other for other in ENTRANTS if other in PAPER or (ours and other.key == EXPOSURE)]
    rivals = [other for other in rivals if ours or other.key != EBRANK]
    ahead = lead(results[key], _labeled(results, rivals, entrant), measure)
    return ahead.contrast.finding(
        f"{entrant.style}-first-{measure.name}",
        f"{entrant.label} leads all other methods in {measure.title}",
        measure,
        AUTO_FIRST if ours else FIRST,
        f"{entrant.label}, {measure.title}",
        str(ahead),
        ours=ours,
    )


def better_lists(results: ByKey) -> Iterator[Finding]:
    """Yield whether users saw better lists with `auto` than with the usual ways to use clicks."""
    auto = entrant_of(AUTO)
    rivals = map(entrant_of, (UCBRANK, CLICKS_AS_FEATURE))
    pairs = {rival: (results[AUTO], results[rival.key]) for rival in rivals}
    for rival, gain in pairwise(pairs, RUN).items():
        yield gain.finding(
            better_than(rival.key),
            f"{auto.label} serves better lists than {rival.name}, by {RUN.title}",
            RUN,
            AUTO_FIRST,
            f"{RUN.title}, against {rival.name}",
            ours=True,
        )


def better_than(rival: str) -> str:
    """Return the name of the finding that compares the lists of `auto` with those of a rival."""
    return f"auto-better-than-{entrant_of(rival).style}"


EXHIBIT = Exhibit("table2", display, runs)
