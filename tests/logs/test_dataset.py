"""A log becomes a dataset of the lab."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ebrank.data import prepare
from ebrank.errors import DataError, ParameterError
from ebrank.logs import Evidence, aggregate, lab_dataset, read_evidence


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder, rng = tmp_path_factory.mktemp("shop"), random.Random(3)
    lines = ["ranking,query,item,type,rank"]
    for number in range(6000):
        for rank, item in enumerate(rng.sample(range(8), 4), start=1):
            lines.append(f"{number},q{number % 30},i{item},impression,{rank}")
            if rng.random() < 0.1 + 0.1 * item:
                lines.append(f"{number},q{number % 30},i{item},click,")
    (folder / "log.csv").write_text("\n".join(lines))
    (folder / "items.csv").write_text("item,x\n" + "".join(f"i{i},{i / 7}\n" for i in range(8)))
    aggregate([folder / "log.csv"], folder / "evidence.parquet")
    return read_evidence(folder / "evidence.parquet", features=folder / "items.csv")


def test_labels_follow_what_users_did(evidence: Evidence) -> None:
    rates = evidence.stats.clicks / evidence.stats.shown
    dataset = lab_dataset(evidence, rates, name="my shop", max_label=2)
    assert (dataset.n_queries, dataset.n_rows, dataset.feature_names) == (30, 240, ("x",))
    assert set(dataset.query_splits.tolist()) == {0, 1, 2}
    assert dataset.labels[rates < 0.25].max() == 0
    assert dataset.labels[rates > 0.7].min() == 2
    assert prepare(dataset).n_queries > 0


def test_what_cannot_be_labeled(evidence: Evidence) -> None:
    with pytest.raises(ParameterError, match="240 finite numbers"):
        lab_dataset(evidence, [0.5])
    bare = Evidence(**vars(evidence) | {"features": None})
    with pytest.raises(DataError, match="no features"):
        lab_dataset(bare, np.zeros(240))
