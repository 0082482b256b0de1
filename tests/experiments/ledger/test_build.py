"""The ledger of a real, small run: every figure is the run's, and what was not run says so."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

import ebrank
from ebrank.cli.reproduce import command
from ebrank.data.dataset import Origin
from ebrank.evaluation.metrics import exploitation_ratio
from ebrank.experiments.framework.experiment import Results, Run, Setup
from ebrank.experiments.framework.folds import Fold, RankerByFold
from ebrank.experiments.framework.outcome import Finding
from ebrank.experiments.ledger import build, references
from ebrank.experiments.ledger.build import AND_ALL, OTHER_FEATURE, ledger, missing
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
    return by_title(ledger(COMMAND, setup, results, [FINDING]))


def by_title(sections: Iterable[LedgerSection]) -> dict[str, LedgerSection]:
    return {section.title.partition(":")[0]: section for section in sections}


def figures(section: LedgerSection, name: str, group: str = "") -> dict[str, LedgerEntry]:
    return {
        entry.figure: entry
        for entry in section.entries
        if entry.name == name and entry.group.startswith(group)
    }


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
        assert (entry.ours, entry.sd, entry.difference) == (None, None, None)
        assert entry.remark == "not run"
        assert entry.reference is not None
    assert sections["Table 2"].note == f"What was not run: `{COMMAND} --only table2`."


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
    section = by_title(ledger(COMMAND, whole, {}, ()))["Table 1"]
    assert figures(section, whole.name)["queries"].ours == 1650
    assert section.note.endswith("Ours are means over the folds.")


def test_the_note_names_the_reference_and_what_differs(
    sections: dict[str, LedgerSection], setup: Setup
) -> None:
    note = sections["Reference"].note
    assert note.startswith("Figures on MQ2007 by Tao Yang, ")
    assert "mq2007-like×0.01 is synthetic and stands in for MQ2007. Known differences" in note
    assert note.endswith(f" every figure: {'; '.join(of_all(setup))}.")


def test_a_remark_has_what_is_known_of_the_ranker_and_points_to_the_rest(
    sections: dict[str, LedgerSection],
) -> None:
    cum = figures(sections["Table 2"], "CFTopK", "W/-Behav (Concate)")["Cum-NDCG"]
    assert cum.remark == f"beyond the spread; {OTHER_FEATURE}; {AND_ALL}"
    assert figures(sections["Table 2"], "BM25")["Cum-NDCG"].remark == (
        f"beyond the spread; {AND_ALL}"
    )


def test_findings_come_first_the_papers_before_ours(setup: Setup) -> None:
    ours = replace(FINDING, verdict="confirmed", ours=True)
    paper, own, *_ = ledger(COMMAND, setup, {}, [ours, FINDING])
    assert (paper.title, paper.findings) == ("What the paper finds", (FINDING,))
    assert paper.note.startswith("3 test queries, 2 trials: a small run")
    assert (own.title, own.findings) == ("What auto must show", (ours,))
    assert ledger(COMMAND, setup, {}, [ours])[0] == own


def test_without_any_run_there_is_no_number(setup: Setup) -> None:
    _, _, _, *rest = ledger(COMMAND, setup, {}, [FINDING])
    assert [section.entries for section in rest] == [(), (), ()]
    assert all(section.note.startswith("Not run; `ebrank reproduce ") for section in rest)


def test_no_name_makes_other_data_comparable(setup: Setup, results: Results) -> None:
    other = Origin("MQ2007", fold=1, differences=("MQ2007 (train): 2 queries, expected 1,017",))
    for name, origin, note in (
        ("MQ2007", None, "Nobody published figures for MQ2007 to hold ours against."),
        ("mq2007-like", None, "Nobody published figures for mq2007-like to hold ours against."),
        (
            *("MQ2007", other),
            "The files are not those of MQ2007 as published, so that no published figure is held "
            "against ours: MQ2007 (train): 2 queries, expected 1,017.",
        ),
    ):
        own = replace(setup, dataset=replace(setup.dataset, name=name, origin=origin))
        assert ledger(COMMAND, own, results, []) == (LedgerSection("Reference", note),)
    assert "MQ2007: not at hand" in [each.title for each in missing([other], trials=5, seed=0)]


def test_on_mq2008_the_released_code_is_the_reference(setup: Setup, results: Results) -> None:
    other = replace(setup, dataset=replace(setup.dataset, origin=Origin("MQ2008", fold=1)))
    sections = by_title(ledger(COMMAND, other, results, []))
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
    usual = command.make_context("reproduce", words).params
    assert (usual["trials"], usual["seed"]) == (build.TRIALS, build.SEED)


# --- remarks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "ours", "sd", "digits", "remark"),
    [
        (0.500, 0.520, 0.0101, 3, ""),  # less than two deviations
        (0.500, 0.520, 0.0099, 3, "beyond the spread; not explained"),
        (0.520, 0.500, 0.0099, 3, "beyond the spread; not explained"),
        (0.500, 0.5049, 0.0001, 3, ""),  # too small to matter
        (150.0, 150.9, 0.1, 1, ""),
        (150.0, 151.1, 0.1, 1, "beyond the spread; not explained"),
        (0.500, 0.520, None, 3, "one trial: the spread is unknown"),
        (None, 0.520, 0.001, 3, ""),
        (0.500, None, None, 3, "not run"),
    ],
)
def test_a_remark_names_what_is_known_or_says_that_nothing_is(
    reference: float | None, ours: float | None, sd: float | None, digits: int, remark: str
) -> None:
    entry = LedgerEntry("EBRank", "Warm-NDCG", reference, ours, sd, digits)
    assert entry.remarked([]).remark == remark
    explained = entry.remarked(["this", "that"]).remark
    assert explained == remark.replace("not explained", "this; that")
    both = reference is not None and ours is not None
    assert entry.difference == (ours - reference if both else None)  # type: ignore[operator]


# --- known differences ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stand_in(setup: Setup) -> Setup:
    """Return the setup with the usual config."""
    return replace(setup, config=SimulationConfig())


def of(setup: Setup, origin: Origin) -> Setup:
    return replace(setup, dataset=replace(setup.dataset, name="any", origin=origin))


def reference(setup: Setup) -> references.Reference:
    theirs = references.reference_for(setup.dataset.origin)
    assert theirs is not None
    return theirs


def of_ranker(setup: Setup, ranker: str, against: str) -> list[str]:
    return build.ranker_differences(reference(setup), registry.parse(ranker), against)


def of_all(setup: Setup) -> list[str]:
    return build.general_differences(setup, reference(setup))


@pytest.mark.parametrize(
    ("ranker", "expected"),
    [
        ("bm25", []),
        ("cftopk:features=none", []),
        ("cftopk:features=concate", [build.OTHER_FEATURE]),
        ("cftopk:features=concate,behavior=ips", []),
        ("prior", [build.OTHER_FEATURE]),
        ("dbgd:features=none", [build.ALL_PARTITIONS]),
        (
            "mgd:features=concate",
            [build.OTHER_FEATURE, build.LOST_CANDIDATES, build.ALL_PARTITIONS],
        ),
        ("pdgd:features=none", [build.ALL_PARTITIONS]),
        ("pdgd:features=concate", [build.OTHER_FEATURE, build.LEAK, build.ALL_PARTITIONS]),
        (
            "ucbrank",
            [build.OTHER_FEATURE, "ε = 0.4 here, not stated there", build.ONCE_CLICKED],
        ),
        (
            "ebrank:epsilon=30",
            ["ε = 30 here, not stated there", build.OTHER_ESTIMATOR, build.OFTEN_SHOWN],
        ),
        (
            "ebrank:estimator=exposure,min_impressions=20",
            ["ε = 20 here, not stated there"],
        ),
    ],
)
def test_known_differences_of_rankers(stand_in: Setup, ranker: str, expected: list[str]) -> None:
    assert of_ranker(stand_in, ranker, ranker) == expected
    assert of_ranker(of(stand_in, Origin("MQ2007", fold=1)), ranker, ranker) == expected


def test_pooled_folds_are_a_difference(stand_in: Setup) -> None:
    data = of(stand_in, Origin("MQ2008", fold=1))
    first = Fold.of(stand_in.dataset, stand_in.config)
    folds = tuple(replace(first, number=n, sessions=n * 1000) for n in (1, 2, 3))
    said = of_all(replace(data, folds=folds))
    assert "folds 1 to 3 here, pooled, fold 1 in the protocol" in said
    assert "14,560 sessions there, 1,000 to 3,000 here" in said
    ranker = RankerByFold((registry.parse("ebrank:epsilon=5"), registry.parse("ebrank")))
    own = build.ranker_differences(reference(stand_in), ranker, "ebrank")
    assert own[0] == "ε = 5/20 here, not stated there"


def test_known_differences_of_the_data(stand_in: Setup) -> None:
    assert of_all(stand_in) == [
        "synthetic data with 0.01 of its queries in place of MQ2007",
        "only 599 sessions, as the set is scaled, and Cum-NDCG grows with their number until it "
        "levels off",
    ]
    whole = of(stand_in, Origin("mq2007-like", preset=True))
    assert of_all(whole) == ["synthetic data in place of MQ2007"]
    assert of_all(of(stand_in, Origin("MQ2007", fold=1))) == []


def test_the_released_code_had_another_simulation_and_a_known_epsilon(stand_in: Setup) -> None:
    setup = of(stand_in, Origin("MQ2008", fold=1))
    ours = setup.config.session_count(setup.dataset)
    sessions = f"14,560 sessions there, {ours:,} here"
    assert of_all(setup) == [sessions, *build.AS_RELEASED]
    as_many = replace(setup, config=replace(setup.config, sessions=14_560))
    assert of_all(as_many) == [*build.AS_RELEASED]
    assert of_ranker(setup, "bm25", "bm25") == of_ranker(setup, "prior", "prior") == []
    assert of_ranker(setup, "prior:behavior=ips", "prior") == [build.RELEASED_FEATURE]
    zero = "ebrank:epsilon=0.0"
    different = of_ranker(setup, "ebrank:epsilon=30", zero)
    assert different == ["ε = 0 there, 30 here", build.OFTEN_SHOWN, build.PLAIN_ALPHA]
    assert of_ranker(setup, "ebrank:epsilon=0,min_impressions=20", zero) == [build.PLAIN_ALPHA]
    assert of_ranker(setup, "ebrank:part=behavior", "ebrank:part=behavior") == []


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (Origin("MQ2007", fold=2), "fold 2 here, fold 1 in the protocol"),
        (Origin("MQ2007"), "an unknown fold here, fold 1 in the protocol"),
        (Origin("MQ2007", fold=1, options=(("max_label", "3"),)), "max_label = 3 here"),
    ],
)
def test_other_data_is_a_difference(stand_in: Setup, origin: Origin, expected: str) -> None:
    assert of_all(of(stand_in, origin)) == [expected]


def test_everything_the_user_changed_is_a_difference(stand_in: Setup) -> None:
    config = SimulationConfig(
        entering_probability=0.5, initial_candidates=(4, 4), updates=4, sessions=400, discount=0.9
    )
    for origin in (Origin("MQ2007", fold=1), Origin("MQ2008", fold=1)):
        setup = replace(of(stand_in, origin), config=config)
        assert set(of_all(setup)) - set(build.AS_RELEASED) == {
            f"400 sessions here, by a formula there, and Cum-NDCG {build.WITH_SESSIONS}"
            if origin.name == "MQ2007"
            else "14,560 sessions there, 400 here",
            "entering_probability = 0.5 here, 1.0 by default",
            "initial_candidates = (4, 4) here, (5, 10) by default",
            "updates = 4 here, 20 by default",
            "discount = 0.9 here, 0.995 by default",
        }
