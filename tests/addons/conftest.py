from __future__ import annotations

import pytest

import ebrank
from ebrank import Dataset


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """As `Locator.of("mq2007-like", scale=0.01)` finds it."""
    return ebrank.load("mq2007-like", scale=0.01)
