"""Each claim can be confirmed, undecided or contradicted, on results known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.paper.exhibits import ablation, beyond, entering, table2, table3, toy
from ebrank.paper.exhibits.beyond import BINARY, FLAT, RARE, USUAL
from ebrank.paper.framework.display import Cell, Finding
from ebrank.paper.framework.entrants import (
    AUTO,
    EBRANK,
    ENTRANTS,
    EXPOSURE,
    EXPOSURE_BOTH,
    EXPOSURE_UNTUNED,
    FIGURES,
    HYBRID,
    UCBRANK,
    entrant_of,
)
from ebrank.paper.framework.measures import COLD, CUM, WARM
from ebrank.paper.framework.runner import FinishedDataset
from ebrank.paper.framework.significance import lead
from ebrank.paper.report.ledger import findings_table
from ebrank.paper.report.tables import markdown
from tests.golden import check_golden
from tests.paper.made import result, sure, with_trials

CONFIG = SimulationConfig()
WORLDS = list(beyond.worlds(CONFIG))
LEVEL = {"none": (0.6, 0.6, 0.6), "concate": (0.4, 0.5, 0.55)}
NAMED = {
    "bm25": (0.5, 0.5, 0.5),
    "pdgd:features=none": (0.65, 0.65, 0.65),
    "prior": (0.6, 0.7, 0.7),
    UCBRANK: (0.6, 0.8, 0.8),
    EBRANK: (0.6, 0.9, 0.9),
    EXPOSURE: (0.6, 0.95, 0.95),
    AUTO: (0.6, 0.999, 0.999),
    "thompson": (0.99, 0.99, 0.99),
    "random": (0.1, 0.1, 0.1),
    "oracle": (1.0, 1.0, 1.0),
}
PARTS = {"full": 0.9, "w/o exploration": 0.8, "only prior": 0.6, "only behavior": 0.7}
LEVELS = {AUTO: 0.9, EXPOSURE_BOTH: 0.89, EXPOSURE_UNTUNED: 0.8, HYBRID: 0.88, UCBRANK: 0.6}
Figures = tuple[float, float, float]


def performance(changes: dict[str, Figures]) -> dict[str, Result]:
    """Return Table 2's results in the paper's order of things, some changed."""
    made = {}
    for number, entrant in enumerate(ENTRANTS):
        figures = NAMED.get(entrant.key) or LEVEL[entrant.key.partition("=")[2]]
        made[entrant.key] = sure(entrant.key, *changes.get(entrant.key, figures), 10 * number)
    return made


def of_table2(changes: dict[str, Figures]) -> Iterable[Finding]:
    return table2.findings(performance(changes))


def of_parts(changes: dict[str, float]) -> Iterable[Finding]:
    """Yield findings where EBRank needs all its parts, but for changes of some."""
    parts = {}
    for number, part in enumerate((ablation.FULL, *ablation.PARTS)):
        level = (PARTS | changes)[part.label]
        parts[part] = sure("ebrank", 0.5, level, level, 10 * number)
    return ablation.findings(entrant_of(EBRANK), parts)


def by_eta(changes: dict[tuple[str, float], float]) -> dict[object, Result]:
    """Return results in which both EBRank lead under every η, but for changes of some."""
    made: dict[object, Result] = {}
    for number, entrant in enumerate(FIGURES):
        for eta in entering.ETAS:
            usual = 0.9 if entrant.key in (EBRANK, EXPOSURE) else 0.5
            level = changes.get((entrant.key, eta), usual)
            made[entrant, eta] = sure(entrant.key, 0.5, level, level, 10 * number)
    return made


def of_etas(changes: dict[tuple[str, float], float]) -> Iterable[Finding]:
    return entering.findings(by_eta(changes))


def by_world(changes: dict[tuple[str, str], float]) -> dict[str, dict[str, Result]]:
    """Return results in which auto leads everywhere, but for what is changed."""
    return {
        world: {
            key: sure(key, 0.5, level, changes.get((world, key), level))
            for key, level in LEVELS.items()
        }
        for world in WORLDS
    }


def of_worlds(changes: dict[tuple[str, str], float]) -> Iterable[Finding]:
    return beyond.findings(by_world(changes))


def both(name: str, verdict: str) -> dict[str, str]:
    return {name.format(measure): verdict for measure in ("warm", "cum")}


def in_world(world: str, *measures: str) -> dict[str, str]:
    names = (f"auto-level-{each}-{world.replace(' ', '-')}" for each in measures or ("cum", "run"))
    return dict.fromkeys(names, "contradicted")


ETAS = {f"{who}-first-{{}}-every-eta" for who in ("ebrank", "ebrank-exposure")}
CFTOPK, MGD = "cftopk:features=concate", "mgd:features=concate"


@pytest.mark.parametrize(
    ("claims", "changes", "expected"),
    [
        (of_table2, {}, {}),
        (of_table2, {MGD: (0.7, 0.5, 0.5)}, {"exploitation-bias-mgd": "contradicted"}),
        (of_table2, {MGD: (0.5999, 0.5, 0.5)}, {"exploitation-bias-mgd": "undecided"}),
        (of_table2, {CFTOPK: (0.4, 0.7, 0.5)}, {"cftopk-degenerates-warm": "contradicted"}),
        (of_table2, {CFTOPK: (0.4, 0.5, 0.7)}, {"cftopk-degenerates-cum": "contradicted"}),
        (of_table2, {CFTOPK: (0.4, 0.5999, 0.5)}, {"cftopk-degenerates-warm": "undecided"}),
        (of_table2, {"prior": (0.5, 0.7, 0.7)}, {"cold-kept-prior": "contradicted"}),
        (of_table2, {"prior": (0.57, 0.7, 0.7)}, {"cold-kept-prior": "undecided"}),
        (of_table2, {EBRANK: (0.6, 0.7, 0.9)}, {"ebrank-first-warm": "contradicted"}),
        (of_table2, {UCBRANK: (0.6, 0.8999, 0.8)}, {"ebrank-first-warm": "undecided"}),
        (of_table2, {EXPOSURE: (0.6, 0.95, 0.8001)}, {"ebrank-exposure-first-cum": "undecided"}),
        (of_table2, {AUTO: (0.6, 0.9501, 0.999)}, {"auto-first-warm": "undecided"}),
        (of_table2, {AUTO: (0.6, 0.999, 0.94)}, {"auto-first-cum": "contradicted"}),
        (
            *(of_table2, {AUTO: (0.6, 0.999, 0.7)}),
            dict.fromkeys(("auto-first-cum", "auto-better-than-ucbrank"), "contradicted"),
        ),
        (of_parts, {}, {}),
        (of_parts, {"w/o exploration": 0.8999}, both("ebrank-needs-exploration-{}", "undecided")),
        (of_parts, {"only prior": 0.95}, both("ebrank-needs-behavior-{}", "contradicted")),
        (of_parts, {"only behavior": 0.95}, both("ebrank-needs-prior-{}", "contradicted")),
        (of_etas, {}, {}),
        *(
            (of_etas, changes, {k: v for name in ETAS for k, v in both(name, verdict).items()})
            for changes, verdict in (
                ({(UCBRANK, 0.2): 0.8999}, "undecided"),
                ({("prior", 0.7): 0.95}, "contradicted"),
                ({("prior", 0.7): 0.95, (UCBRANK, 0.2): 0.8999}, "contradicted"),
            )
        ),
        (of_worlds, {}, {}),
        # within the margins: .5 of Cum-NDCG (20 times what is served here), .003 of Run-NDCG
        (of_worlds, {(USUAL, HYBRID): 0.902}, {}),
        (of_worlds, {(USUAL, HYBRID): 0.904}, in_world(USUAL, "run")),
        (of_worlds, {(RARE, HYBRID): 0.93}, in_world(RARE)),
        (of_worlds, {(BINARY, EXPOSURE_BOTH): 0.93}, in_world(BINARY)),
        (of_worlds, {(FLAT, AUTO): 0.84}, in_world(FLAT)),
        (of_worlds, {("dbn users", EXPOSURE_UNTUNED): 0.99}, {}),  # claims are of tuned rankers
    ],
)
def test_a_claim_fails_only_where_results_are_against_it(
    claims: Callable[[object], Iterable[Finding]], changes: object, expected: dict[str, str]
) -> None:
    findings = list(claims(changes))
    count = {
        of_table2: 6 + 2 + 4 + 6 + 2,
        of_parts: 3 * 2,
        of_etas: 2 * 2,
        of_worlds: 2 * len(WORLDS),
    }
    assert len(findings) == len({finding.name for finding in findings}) == count[claims]
    subjects = {(finding.theme, finding.subject) for finding in findings}
    assert len(subjects) == len(findings), "findings of a theme differ in their subjects"
    assert {each.ours for each in findings if claims is of_worlds} <= {True}
    verdicts = {each.name: each.verdict for each in findings if each.verdict != "confirmed"}
    assert verdicts == expected


def test_findings_say_by_how_much_and_against_whom() -> None:
    findings = [
        *(*of_table2({}), *of_parts({"only prior": 0.95}), *of_etas({(UCBRANK, 0.2): 0.8})),
        *of_worlds({(RARE, HYBRID): 0.93}),
    ]
    text = markdown(findings_table(findings))
    check_golden(Path(__file__).parent / "golden" / "findings.md", text)


def test_bad_luck_under_one_eta_of_five_contradicts_nothing() -> None:
    """Of five ties, one is lost by a p-value that would do if it were the only one."""
    bm25, results = entrant_of("bm25"), by_eta({})
    for eta in entering.ETAS:
        warm = 0.915 if eta == 0.4 else 0.9
        results[bm25, eta] = result("bm25", [(0.5, warm, 0.9)] * 2, noise=0.1, seed=1)
    ours, theirs = results[entrant_of(EBRANK), 0.4], results[bm25, 0.4]
    assert lead(ours, {"BM25": theirs}, WARM).verdict == "contradicted"
    finding = next(entering.findings(results))
    assert finding.verdict == "undecided"
    assert "at η = 0.4, the hardest, against BM25, adjusted p = .0915" in finding.detail
    assert finding.effect is not None
    assert finding.effect.high is not None
    assert finding.effect.value < 0 < finding.effect.high


def test_with_folds_a_finding_says_how_it_varies_with_the_training_set() -> None:
    results = by_world({})
    for key, values in {AUTO: [0.91, 0.92], EXPOSURE_BOTH: [0.9, 0.93]}.items():
        by_fold = {"cum_ndcg": np.array(values) * 100, "run_ndcg": np.array(values)}
        results[USUAL][key] = replace(results[USUAL][key], by_fold=by_fold)
    details = {finding.name: finding.detail for finding in beyond.findings(results)}
    assert details["auto-level-run-users-as-configured"].endswith("; by fold +.010, −.010")
    assert "fold" not in details["auto-level-run-dcm-users"]


def test_level_may_be_luck() -> None:
    """What was counted as holding on means alone is undecided where the test cannot tell."""
    results = by_world({})
    results[USUAL][AUTO] = result(AUTO, [(0.5, 0.9, 0.9)] * 2, noise=0.3, seed=3)
    verdicts = {finding.name: finding.verdict for finding in beyond.findings(results)}
    assert verdicts["auto-level-run-users-as-configured"] == "undecided"


def test_without_exploration_to_lose_ebrank_is_compared_with_itself() -> None:
    full, less = sure("ebrank", 0.5, 0.9, 0.9), sure("ebrank", 0.5, 0.6, 0.6, 7)
    parts = {part: full if part.lacks == "exploration" else less for part in ablation.PARTS}
    parts = {ablation.FULL: full, **parts}
    by_name = {finding.name: finding for finding in ablation.findings(entrant_of(EBRANK), parts)}
    assert by_name["ebrank-needs-exploration-warm"].detail == ablation.ITSELF
    assert by_name["ebrank-needs-exploration-warm"].verdict == "undecided"
    assert by_name["ebrank-needs-prior-warm"].detail.startswith("adjusted p")
    assert ablation.table({entrant_of(EBRANK): parts}).caption.endswith("compared with itself.")


@pytest.mark.parametrize(
    ("weights", "verdict"),
    [
        ([[1.0, -2.0, 3.0], [1.0, 2.0, -3.0]], "confirmed"),
        ([[1.0, -4.0, 3.0], [1.0, 4.0, -3.0]], "contradicted"),
        ([[1.0, -4.0, 3.0], [1.0, 2.0, -2.5]], "undecided"),
        ([[1.0, -2.0, 3.0]], "undecided"),  # one trial has no spread
    ],
)
def test_the_behavior_feature_dominates_or_does_not(
    finished: FinishedDataset, weights: list[list[float]], verdict: str
) -> None:
    made = with_trials(result("bm25", [(0.5, 0.5, 0.5)] * len(weights)), weights=weights)
    results = dict.fromkeys(table3.runs(finished.setup), made)
    findings = table3.display(finished.setup, results).findings
    assert [finding.verdict for finding in findings] == [verdict] * 7


def test_the_new_item_of_the_toy_is_buried_or_not() -> None:
    ranks = np.tile([2.0, 3.0], 10)
    fair = toy.Fate(np.full(7, 0.5), np.array([2.5, 2.5]), ranks, np.ones(4) / 4, 1.0)
    buried = replace(fair, first_ranks=ranks[::-1] + 4)
    for biased, ours, verdict in (
        (fair, fair, "undecided"),
        (buried, fair, "confirmed"),
        (fair, buried, "contradicted"),
    ):
        assert toy.buried({toy.BIASED: biased, toy.OURS: ours}).verdict == verdict


# --- bold and marks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "measure", "marks"),
    [
        ({}, WARM, {"pdgd:features=none": "*", EBRANK: "*†"}),
        ({}, CUM, {"pdgd:features=none": "*", EBRANK: "*†"}),
        # a tie has no star, and the best of all may lack one group
        ({EBRANK: (0.61, 0.9, 0.9)}, COLD, {"pdgd:features=none": "*†", EBRANK: "*"}),
        ({EBRANK: (0.6001, 0.9, 0.9)}, COLD, {"pdgd:features=none": "*†", EBRANK: ""}),
        (
            *({"cftopk:features=none": (0.9, 0.9, 0.9)}, WARM),
            {"cftopk:features=none": "*", EBRANK: "*"},
        ),
        # rows set apart change nothing
        (
            *({EXPOSURE: (0.0, 0.0, 0.0), "oracle": (0.9, 0.9, 0.9)}, WARM),
            {"pdgd:features=none": "*", EBRANK: "*†"},
        ),
    ],
)
def test_the_best_of_each_group_is_marked_if_it_is_surely_better(
    changes: dict[str, Figures], measure: object, marks: dict[str, str]
) -> None:
    assert table2.marks(performance(changes), measure) == marks  # type: ignore[arg-type]


def test_the_table_beyond_marks_the_best_and_what_is_significant_of_auto() -> None:
    worlds = by_world({("dcm users", HYBRID): 0.95, ("dbn users", EXPOSURE_BOTH): 0.9})
    chosen = {world: dict.fromkeys(LEVELS, "") for world in WORLDS}
    chosen[USUAL][HYBRID] = "α = 0.2"
    table = beyond.table(CONFIG, worlds, chosen)
    cum = {(row.group, row.cells[0]): row.cells[3] for row in table.rows}
    for world, ranker, best, marks in (
        (USUAL, "EBRank auto", True, "*"),
        (USUAL, "EBRank (exposure), β and ε tuned", False, ""),
        ("dcm users", "EBRank auto", False, "▾"),
        ("dcm users", "Hybrid LinUCB", True, ""),
        ("dbn users", "EBRank auto", True, ""),
    ):
        cell = cum[world, ranker]
        assert isinstance(cell, Cell)
        assert (cell.best, cell.marks) == (best, marks)
    assert len(table.rows) == len(WORLDS) * 5
    assert {row.cells[-1] for row in table.rows if row.group == USUAL} == {"", "α = 0.2"}
    assert table.rows[0].cells[5] == Cell(pytest.approx(0.4))  # type: ignore[arg-type]
