"""What was made or renamed is on disk under its name: its folder is flushed after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ebrank.service.ops.transfer.exported import Exported
from ebrank.service.ops.transfer.exporting import export
from ebrank.service.ops.transfer.importing import import_store
from ebrank.service.store import open
from ebrank.testing.histories import fill
from tests.service.store.blocking import run


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> dict[Path, set[str]]:
    """Return the names that each folder held when it was last flushed."""
    names: dict[Path, set[str]] = {}
    flush = os.fsync

    def noted(descriptor: int) -> None:
        flush(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            names[path] = {one.name for one in path.iterdir()}

    monkeypatch.setattr(os, "fsync", noted)
    return names


def test_a_store_a_backup_and_an_import_have_their_names_on_disk(
    tmp_path: Path, flushed: dict[Path, set[str]]
) -> None:
    async def session() -> None:
        async with open(str(tmp_path / "new" / "deep" / "store")) as store:
            await fill(store)
            assert "new" in flushed[tmp_path]
            assert "deep" in flushed[tmp_path / "new"]
            assert "store" in flushed[tmp_path / "new" / "deep"]
            assert {"log.db", "lock"} <= flushed[tmp_path / "new" / "deep" / "store"]
            await store.backup(tmp_path / "copy.db")
            assert "copy.db" in flushed[tmp_path]
            await export(store, tmp_path / "exported")
        await import_store(Exported(tmp_path / "exported"), str(tmp_path / "imported"))
        assert "imported" in flushed[tmp_path]

    run(session())
