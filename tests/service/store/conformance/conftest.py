"""What every store must do: each test runs on the store in memory, in a folder, in PostgreSQL."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from ebrank.service.store import Store
from tests.postgres import Postgres
from tests.service.store.checking import Stores


@pytest.fixture(
    params=["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow)],
)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Empty stores of a kind."""
    if request.param == "postgresql":
        database: Postgres = request.getfixturevalue("database")
        return Stores(lambda name: database.url(f"{request.node.originalname} {name}"))
    return Stores(lambda name: "memory:" if request.param == "memory" else f"{tmp_path}/{name}")


@pytest.fixture
def store(stores: Stores) -> AbstractAsyncContextManager[Store]:
    """An empty store; a test gets it open."""
    return stores.new()
