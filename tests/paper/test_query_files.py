"""Files of single queries, read back by other means."""

from __future__ import annotations

import csv
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from ebrank.equations import relevance_probability
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.simulation import parallel
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.paper.query_files import COLUMNS, query_rows, write_table, write_trec


@pytest.fixture(scope="module")
def results(dataset: Dataset) -> list[Result]:
    rankers = [registry.parse(text) for text in ("bm25", "ebrank:epsilon=5,beta=2")]
    config = SimulationConfig(sessions=300, updates=3)
    return parallel.run(dataset, rankers, config, 1, trials=2)


def test_rows_add_up_to_the_trials_figures(
    dataset: Dataset, results: list[Result], tmp_path: Path
) -> None:
    path = tmp_path / "new" / "queries.csv"
    write_table(path, list(query_rows(dataset, results, fold=3)))
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    ids = dataset.query_ids[dataset.queries_in("test")].tolist()
    assert len(rows) == 2 * 2 * len(ids)
    for result in results:
        for number, trial in enumerate(result.trials):
            own = [
                row for row in rows if (row["ranker"], int(row["trial"])) == (result.ranker, number)
            ]
            assert [row["query"] for row in own] == ids
            assert {(row["dataset"], row["fold"]) for row in own} == {(dataset.name, "3")}
            figures = {name: [float(row[name]) for row in own] for name in COLUMNS[5:]}
            assert np.mean(figures["Cold-NDCG"]) == pytest.approx(trial.cold_ndcg[-1, 0])
            assert np.mean(figures["Warm-NDCG"]) == pytest.approx(trial.warm_ndcg[-1, 0])
            assert sum(figures["Cum-NDCG share"]) == pytest.approx(trial.cum_ndcg[-1])
            assert sum(figures["Run-NDCG share"]) == pytest.approx(trial.run_ndcg[-1])


def test_trec_files_give_the_same_ndcg(
    dataset: Dataset, results: list[Result], tmp_path: Path
) -> None:
    """Evaluated from the two files alone, as a tool of TREC's would."""
    write_trec(tmp_path, dataset, results)
    labels: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (tmp_path / "qrels.txt").read_text().splitlines():
        query, _, item, label = line.split()
        labels[query][item] = int(label)
    (path,) = tmp_path.glob("ebrank*_trial1.warm.run")
    ranked: dict[str, list[str]] = defaultdict(list)
    scores: dict[str, list[float]] = defaultdict(list)
    for line in path.read_text().splitlines():
        query, constant, item, rank, score, _ = line.split()
        ranked[query].append(item)
        scores[query].append(float(score))
        assert (constant, int(rank)) == ("Q0", len(ranked[query]))
    assert all(a > b for own in scores.values() for a, b in pairwise(own))
    assert list(ranked) == dataset.query_ids[dataset.queries_in("test")].tolist()
    expected = results[1].trials[1].warm_by_query
    for (query, items), ndcg in zip(ranked.items(), expected, strict=True):
        shown, best = [labels[query][item] for item in items[:5]], sorted(labels[query].values())
        dcg, ideal = (
            relevance_probability(np.array(own, float), dataset.max_label)
            @ (1 / np.log2(np.arange(2, 2 + len(own))))
            for own in (shown, best[:-6:-1])
        )
        assert dcg / ideal == pytest.approx(ndcg)
