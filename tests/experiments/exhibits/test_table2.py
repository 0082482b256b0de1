"""Table 2: bold, marks and findings, on results made so that they are known beforehand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ebrank.experiments.exhibits import table2
from ebrank.experiments.framework.entrants import AUTO, EBRANK, ENTRANTS, EXPOSURE, PAPER, UCBRANK
from ebrank.experiments.framework.measures import COLD, CUM, WARM
from ebrank.experiments.framework.outcome import Cell
from ebrank.experiments.framework.runner import FinishedDataset
from ebrank.experiments.ledger.references import variants
from ebrank.rankers import registry
from ebrank.simulation.result import Result
from tests.experiments.made import result

LEVEL = {"none": (0.6, 0.6, 0.6), "concate": (0.4, 0.5, 0.55)}
NAMED = {
    "bm25": (0.5, 0.5, 0.5),
    "pdgd:features=none": (0.65, 0.65, 0.65),
    "prior": (0.6, 0.7, 0.7),
    UCBRANK: (0.6, 0.8, 0.8),
    EBRANK: (0.6, 0.9, 0.9),
    EXPOSURE: (0.99, 0.99, 0.99),
    AUTO: (0.6, 0.999, 0.999),
    "thompson": (0.99, 0.99, 0.99),
    "random": (0.1, 0.1, 0.1),
    "oracle": (1.0, 1.0, 1.0),
}


def made(changes: dict[str, tuple[float, float, float]] | None = None) -> dict[str, Result]:
    """Return results in the paper's order of things, some changed; every query agrees."""
    found = {}
    for number, one in enumerate(ENTRANTS):
        figures = NAMED.get(one.key) or LEVEL[one.key.partition("=")[2]]
        figures = (changes or {}).get(one.key, figures)
        found[one.key] = result(one.key, [figures] * 2, noise=0.01, seed=10 * number)
    return found


def verdicts(results: dict[str, Result]) -> dict[str, str]:
    return {finding.name: finding.verdict for finding in table2.findings(results)}


def test_the_best_of_each_group_is_marked_if_it_is_surely_better() -> None:
    assert table2.marks(made(), WARM) == {"pdgd:features=none": "*", EBRANK: "*†"}
    assert table2.marks(made(), CUM) == {"pdgd:features=none": "*", EBRANK: "*†"}


def test_a_tie_has_no_star_and_the_best_of_all_may_lack_one_group() -> None:
    cold = table2.marks(made(), COLD)
    assert cold["pdgd:features=none"] == "*†"
    (other,) = cold.keys() - {"pdgd:features=none"}
    assert (cold[other], other in ("prior", UCBRANK, EBRANK)) == ("", True)


def test_better_than_its_group_but_not_than_all() -> None:
    marks = table2.marks(made({"cftopk:features=none": (0.9, 0.9, 0.9)}), WARM)
    assert marks == {"cftopk:features=none": "*", EBRANK: "*"}


def test_rows_set_apart_change_nothing() -> None:
    aloft = {EXPOSURE: (0.0, 0.0, 0.0), "oracle": (0.9, 0.9, 0.9)}
    assert table2.marks(made(aloft), WARM) == table2.marks(made(), WARM)


def test_the_papers_findings_hold_on_results_like_the_papers() -> None:
    found = verdicts(made({EXPOSURE: (0.6, 0.95, 0.95)}))
    assert len(found) == 6 + 2 + 4 + 6
    assert set(found.values()) == {"confirmed"}, found


@pytest.mark.parametrize(
    ("change", "name", "verdict"),
    [
        ({"mgd:features=concate": (0.7, 0.5, 0.5)}, "exploitation-bias-mgd", "contradicted"),
        ({"mgd:features=concate": (0.5999, 0.5, 0.5)}, "exploitation-bias-mgd", "undecided"),
        (
            {"cftopk:features=concate": (0.4, 0.7, 0.5)},
            "cftopk-degenerates-warm",
            "contradicted",
        ),
        ({"cftopk:features=concate": (0.4, 0.5, 0.7)}, "cftopk-degenerates-cum", "contradicted"),
        (
            {"cftopk:features=concate": (0.4, 0.5999, 0.5)},
            "cftopk-degenerates-warm",
            "undecided",
        ),
        ({"prior": (0.5, 0.7, 0.7)}, "cold-kept-prior", "contradicted"),
        ({"prior": (0.57, 0.7, 0.7)}, "cold-kept-prior", "undecided"),
        ({EBRANK: (0.6, 0.7, 0.9)}, "ebrank-first-warm", "contradicted"),
        ({UCBRANK: (0.6, 0.8999, 0.8)}, "ebrank-first-warm", "undecided"),
        ({EXPOSURE: (0.6, 0.95, 0.8001)}, "ebrank-exposure-first-cum", "undecided"),
        ({AUTO: (0.6, 0.9501, 0.999)}, "auto-first-warm", "undecided"),
        ({AUTO: (0.6, 0.999, 0.94)}, "auto-first-cum", "contradicted"),
    ],
)
def test_each_finding_can_be_undecided_or_contradicted(
    change: dict[str, tuple[float, float, float]], name: str, verdict: str
) -> None:
    found = verdicts(made({EXPOSURE: (0.6, 0.95, 0.95)} | change))
    assert {name: each for name, each in found.items() if each != "confirmed"} == {name: verdict}


def test_the_table_of_a_real_run(finished: FinishedDataset) -> None:
    setup = finished.setup
    (table,) = finished.outcomes["table2"].tables
    assert [column.title for column in table.columns[1:]] == [
        "Cold-NDCG",
        "Warm-NDCG",
        "Cum-NDCG",
        "Run-NDCG",
        "Cold (labels)",
        "Warm (labels)",
        "Run (labels)",
    ]
    assert {column.group for column in table.columns[1:]} == {setup.dataset.name}
    assert [row.cells[0] for row in table.rows] == [one.label for one in ENTRANTS]
    assert [row.apart for row in table.rows] == [False] * 16 + [True] * 5
    for one, row in zip(ENTRANTS, table.rows, strict=True):
        found = finished.results[setup.run(one.key)]
        measured = (found.cold_ndcg, found.warm_ndcg, found.cum_ndcg, found.run_ndcg)
        for cell, values in zip(row.cells[1:5], measured, strict=True):
            assert isinstance(cell, Cell)
            assert cell.value == values.mean()
            assert cell.sd == values.std(ddof=1)
        labels = (found.cold_ndcg_labels, found.warm_ndcg_labels, found.run_ndcg_labels)
        assert row.cells[5:] == tuple(Cell(float(values.mean())) for values in labels)
    for column in (1, 2, 3):
        for group in ("without", "with"):
            own = [
                r.cells[column]
                for e, r in zip(ENTRANTS, table.rows, strict=True)
                if e in PAPER and e.group == group
            ]
            best = [cell for cell in own if isinstance(cell, Cell) and cell.best]
            assert [cell.value for cell in best] == [
                max(c.value for c in own if isinstance(c, Cell) and c.value)
            ]


def test_the_variants_of_the_ledger_are_run(finished: FinishedDataset) -> None:
    wanted = [variant.run(finished.setup) for variant in variants(finished.setup.dataset.origin)]
    assert len(wanted) > 5
    assert all(run in finished.results for run in wanted)


def test_findings_tell_their_figures() -> None:
    found = {finding.name: finding for finding in table2.findings(made())}
    bias = found["exploitation-bias-cftopk"]
    assert bias.claim == "CFTopK has a lower Cold-NDCG with clicks as a feature than without"
    assert (bias.theme, bias.subject) == (table2.BIAS, "CFTopK")
    assert bias.detail == "adjusted p < .0001"
    assert bias.effect is not None
    assert bias.effect.unit == "Cold-NDCG lost"
    assert bias.effect.relative(bias.effect.value) == pytest.approx(0.2 / 0.6)
    kept = found["cold-kept-prior"].effect
    assert kept is not None
    assert kept.value == pytest.approx(0.0, abs=1e-9)
    assert kept.border == -0.03
    assert found["ebrank-first-warm"].detail == "against UCBRank, adjusted p = .0001"


def test_findings_of_a_theme_differ_in_their_subjects() -> None:
    subjects = [(finding.theme, finding.subject) for finding in table2.findings(made())]
    assert len(set(subjects)) == len(subjects)
    assert all(theme and subject for theme, subject in subjects)


def test_the_caption_names_the_ranks_measured_and_claims_no_result(
    finished: FinishedDataset,
) -> None:
    setup = finished.setup
    (usual,) = finished.outcomes["table2"].tables
    assert usual.caption.startswith("NDCG@5 on test queries")
    assert "Concate) costs" not in usual.caption
    deeper = replace(setup, config=replace(setup.config, cutoffs=(10, 5)))
    caption = table2.table(deeper, made()).caption
    assert caption.startswith("Cold- and Warm-NDCG@10, Cum- and Run-NDCG@5 on test queries")


def test_a_tuned_ranker_of_the_users_has_the_row_of_what_was_typed(
    finished: FinishedDataset,
) -> None:
    """Whatever was chosen, and even if the same ranker was also added as it is."""
    setup = finished.setup
    chosen = {**setup.chosen, ("ebrank, tuned", setup.config): registry.parse("ebrank:epsilon=7")}
    own = replace(setup, also=("ebrank:epsilon=7", "ebrank, tuned"), chosen=chosen)
    added, tuned = table2.entrants_of(own)[len(ENTRANTS) :]
    assert (added.label, tuned.label) == ("ebrank:epsilon=7", "ebrank, tuned")
    assert own.run(added.key) == own.run(tuned.key)
