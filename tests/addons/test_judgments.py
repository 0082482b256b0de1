"""Judgments from behavior: what they say, beside COEC, and what other tools read."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

from ebrank.addons.judgments import WRITERS, Judgment, Judgments, judged
from ebrank.addons.logs import UBI, aggregate, read_evidence
from ebrank.addons.logs.importing import in_memory
from ebrank.errors import DataError
from ebrank.service.core.queries import normalized
from ebrank.service.settings import Settings
from ebrank.service.store.memory import MemoryStore

Scores = Mapping[tuple[str, str], float]
LENGTH = 10


def coec(path: Path) -> Scores:
    """Return clicks over expected clicks: those of an average item shown at the same ranks."""
    evidence = read_evidence(path)
    counts = evidence.stats.counts
    shown, clicked = counts.sum(axis=0)
    expected = counts[:, 0] @ (clicked / np.maximum(shown, 1))
    scores = counts[:, 1].sum(axis=1) / np.where(expected > 0, expected, 1.0)
    return dict(zip(evidence.pairs(), scores.tolist(), strict=True))


async def posterior(path: Path) -> dict[tuple[str, str], Judgment]:
    found = await judged(*await in_memory(str(path), None, Settings()))
    return {(row.query, row.item): row for row in found.all}


def simulated(path: Path, seed: int) -> dict[tuple[str, str], float]:
    """Write a log of users who look less far down, in which items have their usual ranks.

    Returns the truth: how often a user who looks at an item clicks it.
    """
    rng = np.random.default_rng(seed)
    truth, lines = dict[tuple[str, str], float](), ["query,item,rank,clicked"]
    looks = np.log2(np.arange(2, LENGTH + 2)) ** -1.0
    for query in range(40):
        relevance = rng.beta(1, 5, LENGTH)
        truth |= {(f"q{query}", f"i{item}"): float(relevance[item]) for item in range(LENGTH)}
        usual = rng.normal(size=LENGTH)
        for _ in range(int(rng.integers(5, 200))):
            order = np.argsort(usual + 0.5 * rng.normal(size=LENGTH))
            clicked = rng.random(LENGTH) < looks * relevance[order]
            lines += [
                f"q{query},i{item},{rank},{int(click)}"
                for rank, (item, click) in enumerate(zip(order, clicked, strict=True), start=1)
            ]
    path.write_text("\n".join(lines))
    return truth


def agreement(scores: Scores, truth: Scores) -> float:
    """Return Kendall's tau with the truth, the mean over queries."""
    queries = defaultdict[str, list[tuple[str, str]]](list)
    for pair in truth:
        queries[pair[0]].append(pair)
    taus = [
        kendalltau([scores[pair] for pair in pairs], [truth[pair] for pair in pairs]).statistic
        for pairs in queries.values()
    ]
    return float(np.nan_to_num(taus).mean())


async def test_they_agree_with_the_truth_as_well_as_coec_and_know_how_sure_they_are(
    tmp_path: Path,
) -> None:
    truth = simulated(tmp_path / "log.csv", seed=23)
    out = tmp_path / "evidence.parquet"
    aggregate([tmp_path / "log.csv"], out, clicked="clicked")
    found = await posterior(out)
    means = {pair: row.mean for pair, row in found.items()}
    assert agreement(means, truth) > agreement(coec(out), truth) - 0.02
    covered = np.mean([row.lower <= truth[pair] <= row.upper for pair, row in found.items()])
    assert 0.8 < covered < 0.97  # too few for 90 %: prior and curve are taken as known
    assert all(row.exposure > 0 for row in found.values())


async def test_beside_esci_there_are_too_few_pairs_to_compare(
    ubi_folder: Path, tmp_path: Path
) -> None:
    """The figures of docs/judgments.md."""
    out = tmp_path / "evidence.parquet"
    aggregate([ubi_folder / "ubi_queries_events.ndjson"], out, fields=UBI)
    document = json.loads((ubi_folder / "esci_us_judgments.json").read_text(encoding="utf-8"))
    grades = {
        (normalized(each["query"]), rating["docId"]): float(rating["rating"])
        for each in document["judgmentRatings"]
        for rating in each["ratings"]
    }
    found = await posterior(out)
    by_query = defaultdict[str, list[tuple[str, str]]](list)
    for query, item in found:
        if (normalized(query), item) in grades:
            by_query[query].append((query, item))
    pairs = [pair for some in by_query.values() for pair in some]
    assert (len(found), len(pairs), len(by_query)) == (1106, 36, 8)
    rival = coec(out)
    assert {rival[pair] for pair in pairs} == {0.0}  # nobody clicked any of them


async def test_nothing_shown_is_nothing_to_judge() -> None:
    with pytest.raises(DataError, match="nothing has been shown yet"):
        await judged(MemoryStore(), Settings())


ROWS = Judgments(
    [
        Judgment("=tea", "a", 0.2, 0.1, 0.3, 9.0),
        Judgment("=tea", "b", 0.02, 0.0, 0.1, 1.5),
        Judgment("milk,  raw", "a", 0.13, 0.0, 0.2, 2.0),
    ],
    model=3,
)


def test_what_other_tools_read(tmp_path: Path) -> None:
    for name, write in WRITERS.items():
        write(ROWS, tmp_path / name)
    document = json.loads((tmp_path / "opensearch").read_text())
    assert document["type"] == "IMPORT_JUDGMENT"
    assert document["judgmentRatings"][0] == {
        "query": "=tea",
        "ratings": [{"docId": "a", "rating": "0.2"}, {"docId": "b", "rating": "0.02"}],
    }
    with (tmp_path / "quepid").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["query", "docid", "rating"],
            [" =tea", "a", "3.00"],
            [" =tea", "b", "0.30"],
            ["milk,  raw", "a", "1.95"],
        ]
    assert (tmp_path / "trec").read_text() == "1 0 a 3\n1 0 b 0\n2 0 a 2\n"
    assert (tmp_path / "queries.tsv").read_text() == "1\t=tea\n2\tmilk, raw\n"
    assert pq.read_table(tmp_path / "parquet").to_pylist()[1] == ROWS.all[1]._asdict()
    blank = Judgments([ROWS.all[0]._replace(item="a b")], model=0)
    with pytest.raises(DataError, match="has a blank in its name"):
        WRITERS["trec"](blank, tmp_path / "other")
