"""Roll-ups in portions: interrupted between any two, counters are still snapshot plus log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ebrank.service.ops.replay import replay
from ebrank.service.store.records import RolledUp
from ebrank.service.store.sqlite import SqliteStore, rollup
from tests.service.store.samples import bits, event, fill, ranking, write


@pytest.mark.parametrize("portions", range(5))
def test_an_interrupted_roll_up_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portions: int
) -> None:
    store = SqliteStore(tmp_path)
    log = fill(store)
    current = bits(store.load("q"))
    monkeypatch.setattr(rollup, "PORTION", 2)
    move, left = rollup._move, iter(range(portions))

    def die_after_some(*given: Any, **named: Any) -> None:  # noqa: ANN401
        if next(left, None) is None:
            raise KeyboardInterrupt
        move(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(rollup, "_move", die_after_some)
        if portions < 4:
            with pytest.raises(KeyboardInterrupt):
                store.roll_up(1000.0)
        else:
            assert store.roll_up(1000.0) == RolledUp(3, 5)
    store.close()
    store = SqliteStore(tmp_path)
    assert list(store.log()) == log[2 * portions :]
    assert replay(store).equal
    store.roll_up(1000.0)
    assert list(store.log()) == []
    assert bits(store.snapshot("q")) == bits(store.load("q")) == current
    store.close()


def test_others_write_between_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path)
    fill(store)
    monkeypatch.setattr(rollup, "PORTION", 1)
    fold, numbers = rollup._fold, iter(range(100))

    def write_and_fold(*given: Any) -> None:  # noqa: ANN401
        served = ranking(f"new-{next(numbers)}", "abc", time=100.0)
        write(store, [served, event(f"of-{served.id}", served, "a", time=100.0)])
        fold(*given)

    monkeypatch.setattr(rollup, "_fold", write_and_fold)
    assert store.roll_up(90.0) == RolledUp(3, 5)
    assert len(list(store.log())) == 16
    assert replay(store).equal
    store.close()
