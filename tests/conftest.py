"""Fixtures shared by all tests: the real data where it is at hand, and caches of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


def _real_data(*parts: str) -> Path:
    """Return a folder of the real data, or skip the test and say what is missing."""
    roots = [PROJECT.parent / "shared" / "data"]
    if "EBRANK_DATA" in os.environ:
        roots.append(Path(os.environ["EBRANK_DATA"]))
    for root in roots:
        folder = root.joinpath(*parts)
        if folder.is_dir():
            return folder
    pytest.skip(f"real data absent: no {'/'.join(parts)} in ../shared/data or EBRANK_DATA")


@pytest.fixture(scope="session")
def mq2008_folder() -> Path:
    """Fold 1 of LETOR 4.0 MQ2008."""
    return _real_data("MQ2008", "Fold1")


@pytest.fixture(scope="session")
def mslr_sample_folder() -> Path:
    """Whole queries sampled from MSLR-WEB30K."""
    return _real_data("MSLR-WEB30K-sample")


@pytest.fixture(autouse=True)
def fresh_dataset_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give every test a dataset cache of its own; compiled kernels keep the shared one."""
    folder = tmp_path / "dataset-cache"
    monkeypatch.setenv("EBRANK_DATASET_CACHE", str(folder))
    yield folder
