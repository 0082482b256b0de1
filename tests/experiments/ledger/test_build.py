"""The ledger of a real, small run: every figure is the run's, and what was not run says so."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pytest

import ebrank
from ebrank.cli.reproduce import reproduce
from ebrank.data.dataset import Origin
from ebrank.evaluation.metrics import exploitation_ratio
from ebrank.experiments.framework.experiment import Results, Run, Setup
from ebrank.experiments.framework.folds import Fold
from ebrank.experiments.framework.outcome import Finding, from_plain, to_plain
from ebrank.experiments.ledger import build, references
from ebrank.experiments.ledger.build import AND_ALL, ledger, missing
from ebrank.experiments.ledger.differences import OTHER_FEATURE
from ebrank.experiments.ledger.entries import LedgerEntry, LedgerSection
from ebrank.rankers import registry
from ebrank.simulation import parallel
from ebrank.simulation.config import SimulationConfig

COMMAND = "ebrank reproduce --gamma 0.9"
CONFIG = SimulationConfig(sessions=120, updates=2, warmup_sessions=5)
EBRANK = "ebrank:epsilon=7"
RANKERS = ("bm25", "cftopk:features=concate", "ebrank:epsilon=7,min_impressions=20", EBRANK)
FINDING = Finding("x", "it holds", "undecided", "it may not")


@pytest.fixture(scope="module")
def setup() -> Setup:
    data = ebrank.load("mq2007-like", scale=0.01)
    return Setup(
        data, CONFIG, seed=1, trials=2, chosen={("ebrank", CONFIG): registry.parse(EBRANK)}
    )


@pytest.fixture(scope="module")
def results(setup: Setup) -> Results:
    rankers = [registry.parse(text) for text in RANKERS]
    done = parallel.run(setup.dataset, rankers, CONFIG, setup.seed, trials=2)
    return {Run(ranker, CONFIG): result for ranker, result in zip(rankers, done, strict=True)}


@pytest.fixture(scope="module")
def sections(setup: Setup, results: Results) -> dict[str, LedgerSection]:
    return {
        section.title.partition(":")[0]: section
        for section in ledger(COMMAND, setup, results, [FINDING])
    }


def figures(section: LedgerSection, name: str, group: str = "") -> dict[str, LedgerEntry]:
    return {
        entry.figure: entry
        for entry in section.entries
        if entry.name == name and entry.group.startswith(group)
    }


def test_sections_are_read_back(setup: Setup, results: Results) -> None:
    for section in ledger(COMMAND, setup, results, [FINDING]):
        assert from_plain(LedgerSection, json.loads(json.dumps(to_plain(section)))) == section


def test_table_2_holds_what_was_run(sections: dict[str, LedgerSection], results: Results) -> None:
    table = sections["Table 2"]
    assert len(table.entries) == 48
    own = figures(table, "CFTopK", "W/-Behav (Concate)")
    result = results[Run(registry.parse(RANKERS[1]), CONFIG)]
    assert [entry.reference for entry in own.values()] == [0.385, 0.579, 113.5]
    for title, values in (("Cold-NDCG", result.cold_ndcg), ("Cum-NDCG", result.cum_ndcg)):
        assert own[title].ours == pytest.approx(sum(values) / 2)
        assert own[title].sd == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    ours = figures(table, "EBRank")["Warm-NDCG"].ours
    assert ours == results[Run(registry.parse(EBRANK), CONFIG)].warm_ndcg.mean()


def test_what_was_not_run_says_so(sections: dict[str, LedgerSection]) -> None:
    for entry in figures(sections["Table 2"], "PDGD", "W/o").values():
        assert (entry.ours, entry.sd, entry.difference, entry.remark) == (
            None,
            None,
            None,
            "not run",
        )
        assert entry.reference is not None
    assert (
        sections["Table 2"].note
        == "What was not run: `ebrank reproduce --gamma 0.9 --only table2`."
    )


def test_table_3_holds_the_weights(sections: dict[str, LedgerSection], results: Results) -> None:
    own = figures(sections["Table 3"], "CFTopK")
    result = results[Run(registry.parse(RANKERS[1]), CONFIG)]
    shares = [
        exploitation_ratio(trial.weights if trial.weights is not None else [])
        for trial in result.trials
    ]
    assert own["x^b"].ours == pytest.approx(np.mean([share[-1] for share in shares]))
    assert own["largest other"].ours == pytest.approx(
        np.mean([max(share[:-1]) for share in shares])
    )
    assert (own["x^b"].reference, own["largest other"].reference) == (0.591, 0.098)
    assert (own["x^b"].reference_sd, own["largest other"].reference_sd) == (0.087, 0.033)


def test_variants_are_held_against_the_rankers_they_vary(
    sections: dict[str, LedgerSection],
) -> None:
    section = sections["Variants of Table 2's rankers"]
    varied = figures(section, "EBRank, prior trained on n > 20")["Warm-NDCG"]
    assert varied.reference == 0.849
    assert varied.ours is not None
    assert figures(section, "PRIOR, x^b = C/n")["Warm-NDCG"].remark == "not run"


def test_table_1_describes_the_dataset(sections: dict[str, LedgerSection], setup: Setup) -> None:
    queries, candidates, features, label = sections["Table 1"].entries
    assert (queries.reference, queries.ours, queries.remark) == (1643, 16, "a scaled set")
    assert candidates.ours == setup.dataset.n_rows / 16
    assert features.difference == setup.dataset.n_features - 46
    assert (label.difference, label.remark) == (0, "")


def test_of_pooled_folds_table_1_has_means(setup: Setup) -> None:
    first = Fold.of(setup.dataset, setup.config)
    folds = (replace(first, number=1, queries=1600), replace(first, number=2, queries=1700))
    whole = replace(setup, folds=folds)
    section = next(
        each for each in ledger(COMMAND, whole, {}, ()) if each.title.startswith("Table 1")
    )
    assert figures(section, whole.name)["queries"].ours == 1650
    assert section.note.endswith("Ours are means over the folds.")


def test_the_note_names_the_reference(sections: dict[str, LedgerSection]) -> None:
    note = sections["Reference"].note
    assert note.startswith("Figures on MQ2007 by Tao Yang, ")
    assert "mq2007-like×0.01 is synthetic and stands in for MQ2007. Known differences" in note
    assert note.endswith(
        "every figure: synthetic data with 0.01 of its queries in place of MQ2007; 120 sessions "
        "here, by a formula there, and Cum-NDCG grows with their number until it levels off; "
        "warmup_sessions = 5 here, 20 by default; updates = 2 here, 20 by default."
    )


def test_a_remark_has_what_is_known_of_the_ranker_and_points_to_the_rest(
    sections: dict[str, LedgerSection],
) -> None:
    cum = figures(sections["Table 2"], "CFTopK", "W/-Behav (Concate)")["Cum-NDCG"]
    assert cum.remark == f"beyond the spread; {OTHER_FEATURE}; {AND_ALL}"
    assert figures(sections["Table 2"], "BM25")["Cum-NDCG"].remark == (
        f"beyond the spread; {AND_ALL}"
    )


def test_findings_are_part_of_it(sections: dict[str, LedgerSection]) -> None:
    section = sections["What the paper finds"]
    assert section.findings == (FINDING,)
    assert section.note.startswith("3 test queries, 2 trials: a small run")


def test_claims_of_our_own_stand_apart(setup: Setup) -> None:
    ours = replace(FINDING, verdict="confirmed", ours=True)
    paper, own, *_ = ledger(COMMAND, setup, {}, [ours, FINDING])
    assert (paper.title, paper.findings) == ("What the paper finds", (FINDING,))
    assert (own.title, own.findings) == ("What auto must show", (ours,))
    only, *_ = ledger(COMMAND, setup, {}, [ours])
    assert only.title == "What auto must show"


def test_without_any_run_there_is_no_number(setup: Setup) -> None:
    _, _, _, *rest = ledger(COMMAND, setup, {}, [FINDING])
    assert [section.entries for section in rest] == [(), (), ()]
    assert all(section.note.startswith("Not run; `ebrank reproduce ") for section in rest)


def test_a_dataset_of_ones_own_has_no_reference(setup: Setup, results: Results) -> None:
    own = replace(setup, dataset=replace(setup.dataset, name="mine", origin=None))
    (section,) = ledger(COMMAND, own, results, [])
    assert section == LedgerSection(
        "Reference", "Nobody published figures for mine to hold ours against."
    )


def test_no_name_makes_other_data_comparable(setup: Setup, results: Results) -> None:
    for name in ("MQ2007", "mq2007-like"):
        own = replace(setup, dataset=replace(setup.dataset, name=name, origin=None))
        assert [section.title for section in ledger(COMMAND, own, results, [])] == ["Reference"]
    other = Origin("MQ2007", fold=1, differences=("MQ2007 (train): 2 queries, expected 1,017",))
    odd = replace(setup, dataset=replace(setup.dataset, name="MQ2007", origin=other))
    (section,) = ledger(COMMAND, odd, results, [])
    assert section.note == (
        "The files are not those of MQ2007 as published, so that no published figure is held "
        "against ours: MQ2007 (train): 2 queries, expected 1,017."
    )
    assert "MQ2007: not at hand" in [each.title for each in missing([other], trials=5, seed=0)]


def test_on_mq2008_the_released_code_is_the_reference(setup: Setup, results: Results) -> None:
    other = replace(setup, dataset=replace(setup.dataset, origin=Origin("MQ2008", fold=1)))
    sections = {
        section.title.partition(":")[0]: section for section in ledger(COMMAND, other, results, [])
    }
    assert "Table 1" not in sections
    own = figures(sections["Table 2"], "EBRank")
    assert [entry.reference for entry in own.values()] == [0.701, 0.833, 171.3]
    assert figures(sections["Table 2"], "DBGD", "W/o")["Cold-NDCG"].reference is None
    assert figures(sections["Table 3"], "PRIOR")["x^b"].reference == 0.717


@pytest.mark.parametrize(
    ("here", "absent"),
    [
        (
            [Origin("mq2007-like", preset=True), None],
            ["MQ2007", "MSLR-10K", "MSLR-30K", "MQ2008"],
        ),
        ([Origin("MQ2008"), Origin("MSLR-WEB10K")], ["MQ2007", "MSLR-30K"]),
    ],
)
def test_data_not_at_hand_has_the_command_that_fills_it(
    here: list[Origin | None], absent: list[str]
) -> None:
    sections = missing(here, trials=5, seed=1)
    assert [section.title for section in sections] == [f"{name}: not at hand" for name in absent]
    assert all(not section.entries for section in sections)
    assert (
        "`ebrank reproduce --dataset MQ2007 --data-dir FOLDER --seed 1` fills" in sections[0].note
    )
    assert all("Download it from https://www.microsoft.com/" in one.note for one in sections)
    assert ("mq2007-like stands in" in sections[0].note) == (None in here)
    assert len(references.REFERENCES) == 4


def test_the_defaults_are_those_of_the_command() -> None:
    name, verb, *words = shlex.split(build.command_for("MQ2008"))
    assert (name, verb) == ("ebrank", "reproduce")
    usual = reproduce.make_context("reproduce", words).params
    assert (usual["trials"], usual["seed"]) == (build.TRIALS, build.SEED)
