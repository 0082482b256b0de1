"""`kill -9` at random moments: what was acknowledged is there, once. A benchmark does it more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.store.killing import kill_again_and_again

pytestmark = pytest.mark.slow


def test_nothing_acknowledged_is_lost_and_nothing_counts_twice(tmp_path: Path) -> None:
    outcome = kill_again_and_again(tmp_path / "store", rounds=4)
    assert outcome.acknowledged >= 4 * 3
