"""The reference figures against their sources, read anew, and against what such figures must be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ebrank
from ebrank.data.dataset import Origin
from ebrank.data.presets import PRESETS
from ebrank.experiments.framework.entrants import TUNED
from ebrank.experiments.framework.experiment import Setup
from ebrank.experiments.ledger import references
from ebrank.experiments.ledger.references import (
    AS_RELEASED,
    REFERENCES,
    VARIANTS,
    Performance,
    Ratio,
    Statistics,
)
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig

SOURCES = Path(__file__).parents[3] / "shared"
NUMBER = re.compile(r"(?<![\d.])0?\.\d{3}|\d+\.\d+")
LABELS = {
    "BM25": "bm25",
    "PRIOR": "prior",
    "UCBRank": "ucbrank",
    "EBRank": "ebrank",
    "EBRank(ours)": "ebrank",
}


def source(*parts: str) -> str:
    path = SOURCES.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"not at hand to be compared with: ../shared/{'/'.join(parts)}")
    return path.read_text(encoding="utf-8")


def table_of(text: str, label: str) -> str:
    """Return the rows of a table of the LaTeX source, one per line."""
    (found,) = (
        part
        for part in re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", text, re.DOTALL)
        if f"\\label{{{label}}}" in part
    )
    plain = re.sub(r"\\textbf\{([^}]*)\}|\$\^\{[^}]*\}\$", r"\1", found)
    return plain.replace("\n", " ").replace("\\\\", "\n")


def key_of(label: str, seen: set[str]) -> str:
    """Return our text of a row's ranker: the second of a name is that with behavior."""
    if label in LABELS:
        return LABELS[label]
    first = f"{label.lower()}:features=none"
    return first if first not in seen else f"{label.lower()}:features=concate"


def performance_rows(text: str) -> Iterator[tuple[str, list[Performance]]]:
    seen: set[str] = set()
    for line in table_of(text, "tab:rankingPerform").splitlines():
        cells = [cell.strip() for cell in line.split("&")]
        if len(cells) >= 10 and all(NUMBER.search(cell) for cell in cells[-9:]):
            label = cells[-10].split()[-1]
            key = key_of(label, seen)
            seen.add(key)
            numbers = [float(NUMBER.findall(cell)[0]) for cell in cells[-9:]]
            yield key, [Performance(*numbers[i : i + 3]) for i in (0, 3, 6)]


def test_table_2_is_that_of_the_papers_source() -> None:
    rows = dict(performance_rows(source("paper", "ebrank-references.tex")))
    assert len(rows) == 16
    for place, dataset in enumerate(references.DATASETS):
        expected = {key: performances[place] for key, performances in rows.items()}
        assert REFERENCES[dataset].performance == expected


def test_table_3_is_that_of_the_papers_source() -> None:
    rows = {}
    for line in table_of(source("paper", "ebrank-references.tex"), "tab:modelWeight").splitlines():
        numbers = re.findall(r"0\.\d{3}", line)
        if len(numbers) == 4:
            label = line.split("&")[0].split()[-1]
            rows[key_of(label, {f"{label.lower()}:features=none"})] = Ratio(*map(float, numbers))
    assert len(rows) == 7
    assert REFERENCES["MQ2007"].ratios == rows


def test_table_1_is_that_of_the_papers_source() -> None:
    rows = {}
    for line in table_of(
        source("paper", "ebrank-references.tex"), "tab:data_statistics"
    ).splitlines():
        if found := re.search(r"(M\S+)\s*&" + r"\D*(\d+)\D*&" * 3 + r"\$0-(\d)\$&", line):
            name, *numbers = found.groups()
            rows[name.upper()] = Statistics(*map(int, numbers))
    assert rows == references.STATISTICS


def test_the_released_codes_figures_are_those_of_the_protocol() -> None:
    text = source("PROTOCOL.md").partition("## The released code, measured")[2]
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    published = {
        tuple(float(part) for part in re.findall(r"\d*\.\d+", f"{warm} {cum} {ratio}"))
        for _, _, _, warm, cum, _, _, ratio in rows
        if "/" not in cum
    } - {()}
    ours = {
        (figures.warm, figures.cum)
        + ((ratio.behavior,) if (ratio := REFERENCES["MQ2008"].ratios.get(ranker)) else ())
        for ranker, figures in REFERENCES["MQ2008"].performance.items()
        if "part=" not in ranker
    }
    assert ours == published
    assert len(ours) == 14


@pytest.mark.parametrize("name", REFERENCES)
def test_figures_are_possible(name: str) -> None:
    each = REFERENCES[name]
    assert len({registry.parse(ranker) for ranker in each.performance}) == 16
    for ranker, figures in each.performance.items():
        assert 0 < figures.cold <= figures.warm < 1, ranker
        assert 0 < figures.cum < 200 == pytest.approx(1 / (1 - 0.995))
        if registry.parse(ranker).setting == "none":
            assert figures.cold == figures.warm, ranker
    for ranker, ratio in each.ratios.items():
        assert 0 < (ratio.other or 0) + ratio.behavior < 1, ranker


def test_column_sums() -> None:
    sums = {
        name: [
            round(sum(getattr(figures, metric) for figures in each.performance.values()), 3)
            for metric in ("cold", "warm", "cum")
        ]
        for name, each in REFERENCES.items()
    }
    assert sums == {
        "MQ2007": [8.507, 10.738, 1997.37],
        "MSLR-10K": [7.503, 8.971, 1694.56],
        "MSLR-30K": [7.549, 9.102, 1715.75],
        "MQ2008": [10.377, 12.413, 2411.3],
    }


def test_every_embedded_dataset_but_one_stands_in_for_one_of_the_paper() -> None:
    *imitations, ours = PRESETS.values()
    assert references.reference_for(Origin(ours.name, preset=True)) is None
    names = [preset.name for preset in imitations]
    assert dict(references.STAND_INS) == dict(zip(names, references.DATASETS, strict=True))
    for preset in imitations:
        found = references.reference_for(Origin(preset.name, preset=True))
        assert found is not None
        assert found.statistics == Statistics(
            preset.queries, preset.mean_candidates, preset.n_features, preset.max_label
        )


@pytest.mark.parametrize(
    ("origin", "published"),
    [
        (Origin("MQ2007", fold=1), "MQ2007"),
        (Origin("MQ2007", fold=2), "MQ2007"),
        (Origin("MQ2007", fold=1, differences=("another size",)), None),
        (Origin("MQ2007", preset=True), None),
        (Origin("MQ2008"), "MQ2008"),
        (Origin("MSLR-WEB10K"), "MSLR-10K"),
        (Origin("MSLR-WEB30K"), "MSLR-30K"),
        (Origin("mslr30k-like", preset=True, scale=0.05), "MSLR-30K"),
        (Origin("mslr30k-like"), None),
        (None, None),
    ],
)
def test_which_figures_a_dataset_is_compared_with(
    origin: Origin | None, published: str | None
) -> None:
    found = references.reference_for(origin)
    assert (found and found.dataset) == published


# --- variants ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def setup() -> Setup:
    """Return a setup in which every ε was chosen to be 7."""
    chosen = {
        (key, SimulationConfig()): registry.parse(f"{key}{',' if ':' in key else ':'}epsilon=7")
        for key in TUNED
    }
    return Setup(ebrank.load("mq2007-like", scale=0.01), SimulationConfig(), chosen=chosen)


def test_variants_share_the_chosen_epsilon_unless_they_are_as_released(setup: Setup) -> None:
    texts = [str(variant.run(setup).ranker) for variant in VARIANTS]
    assert texts == [
        "ebrank:epsilon=7,estimator=exposure",
        "ebrank:epsilon=7,min_impressions=20",
        "ebrank:epsilon=7,estimator=exposure,min_impressions=20",
        *(f"{name}:features=concate,behavior=ips" for name in ("dbgd", "mgd", "pdgd")),
        *(f"cf{name}:behavior=ips,features=concate" for name in ("topk", "randomk", "epsilon")),
        "prior:behavior=ips",
        "ucbrank:behavior=ips,epsilon=7",
    ]
    for variant in AS_RELEASED:
        ranker, (against,) = variant.run(setup).ranker, variant.against
        assert ranker == registry.parse(variant.key)
        assert ranker.value("epsilon") == registry.parse(against).value("epsilon")


@pytest.mark.parametrize(
    "origin",
    [
        *(Origin("mq2007-like", preset=True), Origin("mslr10k-like", preset=True)),
        *(Origin("MQ2008", fold=1), Origin("MSLR-WEB30K", fold=1)),
    ],
)
def test_every_variant_has_a_reference(origin: Origin) -> None:
    theirs = references.reference_for(origin)
    assert theirs is not None
    for variant in references.variants(origin):
        meant = {*variant.against, *(f"{ranker}:epsilon=0.0" for ranker in variant.against)}
        assert meant & theirs.performance.keys(), variant.name
