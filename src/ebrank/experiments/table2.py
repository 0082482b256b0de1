"""Table 2: how well every ranker ranks, in the paper's three feature settings.

The best of a group is bold. `*` says that it is significantly better than all others of its group,
`†` than all others of the table. Concate and non-Concate form one group, as in the paper. Rows set
apart take part in none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from ebrank.experiments.contest import LEVEL, in_words, lead, pairwise
from ebrank.experiments.lineup import (
    CONCATENATING,
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    PAPER,
    TUNED,
    UCBRANK,
    Entrant,
    entrant,
    twin,
)
from ebrank.experiments.measures import COLD, CUM, MEASURES, WARM, Measure, cells
from ebrank.experiments.outcome import Cell, Column, Finding, Outcome, Row, Table
from ebrank.experiments.run import Experiment, Results, Run, Setup
from ebrank.experiments.variants import variants
from ebrank.simulation.result import Result

ByKey: TypeAlias = Mapping[str, Result]

BIAS = "Behavior concatenated as a feature costs Cold-NDCG"
DEGENERATION = "CFTopK gets worse by behavior"
COLD_KEPT = "Rankers made for new items keep their Cold-NDCG"
FIRST = "EBRank is first"
KEPT = 0.03
"""A Cold-NDCG no further than this below that of CFTopK without behavior counts as kept."""
CAPTION = (
    "NDCG@5 on test queries, mean of the trials. The best of a group is bold; W/-Behav (Concate) "
    "and W/-Behav (non-Concate) are one group. * : significantly better than all others of its "
    "group; † : than all others of the table (Fisher's randomization test over test queries, "
    "Holm-adjusted p < .05). EBRank (exposure) and the last rows are not in the paper's table and "
    "take part in no comparison."
)


def runs(setup: Setup) -> list[Run]:
    """Return all entrants, and the variants that the ledger speaks of."""
    entrants = [setup.run(one.key) for one in ENTRANTS]
    return entrants + [variant.run(setup) for variant in variants(setup.dataset.origin)]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the table, and which of the paper's findings it bears out."""
    by_key = {one.key: results[setup.run(one.key)] for one in ENTRANTS}
    return Outcome(tables=(table(setup, by_key),), findings=tuple(findings(by_key)))


def table(setup: Setup, results: ByKey) -> Table:
    """Return the table of one dataset."""
    columns = [Column(measure.title, setup.dataset.name) for measure in MEASURES]
    marked = [marks(results, measure) for measure in MEASURES]
    rows = []
    for one in ENTRANTS:
        row: list[Cell | str] = [one.label]
        for index, own in enumerate(cells(results[one.key])):
            mark = marked[index].get(one.key)
            row.append(own if mark is None else replace(own, best=True, marks=mark))
        rows.append(Row(tuple(row), one.heading, one.apart))
    title = "Ranking performance"
    return Table("table2", title, CAPTION, (Column("ranker"), *columns), tuple(rows))


def marks(results: ByKey, measure: Measure) -> dict[str, str]:
    """Return the marks of the best of each group, by key; "" where it may be luck."""
    found = {}
    for group in ("without", "with"):
        members = [one for one in PAPER if one.group == group]
        best = _best(results, members, measure)
        ahead = lead(results[best.key], _labeled(results, members, best), measure)
        found[best.key] = "*" if ahead.significant else ""
    best = _best(results, PAPER, measure)
    if lead(results[best.key], _labeled(results, PAPER, best), measure).significant:
        found[best.key] += "†"
    return found


def _best(results: ByKey, members: list[Entrant] | tuple[Entrant, ...], by: Measure) -> Entrant:
    return max(members, key=lambda one: by.mean(results[one.key]))


def _labeled(
    results: ByKey, members: list[Entrant] | tuple[Entrant, ...], but: Entrant
) -> dict[str, Result]:
    """Return the results of all but one, by label and setting."""
    return {f"{one.label}, {one.setting}": results[one.key] for one in members if one is not but}


def findings(results: ByKey) -> Iterator[Finding]:
    """Yield what the paper says of its table (Sec. 5.2), checked."""
    yield from exploitation_bias(results)
    yield from degeneration(results)
    yield from kept_cold(results)
    for key in (EBRANK, EXPOSURE):
        for measure in (WARM, CUM):
            yield from first(results, key, measure)


def exploitation_bias(results: ByKey) -> Iterator[Finding]:
    """Yield whether each ranker, x^b concatenated, is worse at cold items than without it."""
    twins = {one: other for one in CONCATENATING if (other := twin(one)) is not None}
    pairs = {one.key: (results[other.key], results[one.key]) for one, other in twins.items()}
    compared = pairwise(pairs, COLD)
    for one in twins:
        loss, p_value = compared[one.key]
        yield Finding(
            f"exploitation-bias-{one.style}",
            f"{one.label} with x^b concatenated is significantly worse in Cold-NDCG than without",
            loss > 0 and p_value < LEVEL,
            f"{COLD.text(-loss, '+')} in Cold-NDCG, adjusted {in_words(p_value)}",
            BIAS,
            one.label,
        )


def degeneration(results: ByKey) -> Iterator[Finding]:
    """Yield whether CFTopK gets worse by behavior features, even where there is behavior."""
    without, with_behavior = (results[f"cftopk:features={which}"] for which in ("none", "concate"))
    for measure in (WARM, CUM):
        gain, p_value = pairwise({"": (with_behavior, without)}, measure)[""]
        told = f"{measure.text(gain, '+')} in {measure.title}, {in_words(p_value)}"
        worse = gain < 0
        for surely, holds in (("", worse), ("significantly", worse and p_value < LEVEL)):
            yield Finding(
                "-".join(filter(None, ("cftopk-degenerates", measure.name, surely))),
                f"CFTopK with x^b concatenated is {f'{surely} worse'.strip()} in {measure.title} "
                "than without",
                holds,
                told,
                DEGENERATION,
                ", ".join(filter(None, (measure.title, surely))),
            )


def kept_cold(results: ByKey) -> Iterator[Finding]:
    """Yield whether those made for cold items are as good at them as CFTopK without behavior."""
    without = COLD.mean(results["cftopk:features=none"])
    for key in ("prior", UCBRANK, EBRANK, EXPOSURE):
        gap = COLD.mean(results[key]) - without
        one = entrant(key)
        yield Finding(
            f"cold-kept-{one.style}",
            f"{one.label} keeps its Cold-NDCG: no more than {COLD.text(KEPT)} below that of "
            "CFTopK without behavior",
            gap >= -KEPT,
            f"{COLD.text(gap, '+')} in Cold-NDCG",
            COLD_KEPT,
            one.label,
        )


def first(results: ByKey, key: str, measure: Measure) -> Iterator[Finding]:
    """Yield whether EBRank, by one of its estimators, is ahead of all other methods, surely or not.

    Its other estimator is no other method, and no rival.
    """
    one = entrant(key)
    rivals = [other for other in PAPER if other.key != EBRANK]
    ahead = lead(results[key], _labeled(results, rivals, one), measure)
    claim = f"{one.label} is ahead of all other methods in {measure.title}"
    name = f"{one.style}-first-{measure.name}"
    subject = f"{one.label}, {measure.name.capitalize()}"
    yield Finding(name, claim, ahead.difference > 0, str(ahead), FIRST, subject)
    yield Finding(
        f"{name}-significantly",
        f"{one.label} is significantly ahead of all other methods in {measure.title}",
        ahead.significant,
        str(ahead),
        FIRST,
        f"{subject}, significantly",
    )


EXPERIMENT = Experiment("table2", "Table 2: ranking performance", outcome, runs, tuned=TUNED)
