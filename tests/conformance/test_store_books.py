"""What every store must keep beside items and log: minutes, models, settings."""

from __future__ import annotations

import pytest

from ebrank.service.store.base import Store, StoreError
from ebrank.service.store.records import Minute, ModelRecord, NewItem


def test_minutes_add_up(store: Store) -> None:
    store.add_minutes(
        [Minute(60.0, {"clicks": 1.0, "rankings": 2.0}), Minute(0.0, {"clicks": 5.0})]
    )
    store.add_minutes([Minute(60.0, {"clicks": 1.5})])
    kept = [(minute.start, minute.values) for minute in store.minutes(0.0)]
    assert kept == [(0.0, {"clicks": 5.0}), (60.0, {"clicks": 2.5, "rankings": 2.0})]
    assert [minute.start for minute in store.minutes(1.0)] == [60.0]


def test_models_are_kept_and_one_is_active(store: Store) -> None:
    first = ModelRecord(1, 5.0, 10, None, 0.5, activated=True, reason="schedule")
    second = ModelRecord(2, 6.0, 20, 0.4, 0.3, activated=False, reason="worse")
    store.add_model(first, b"one")
    store.add_model(second, b"two\0")
    assert store.models() == [first, second]
    assert (store.model(1), store.model(2), store.model(3)) == (b"one", b"two\0", None)
    assert store.active_model() == 1
    store.activate(2)
    assert store.active_model() == 2
    assert [record.activated for record in store.models()] == [True, True]
    store.activate(0, meta={"pinned": "yes"})
    assert (store.active_model(), store.meta("pinned")) == (0, "yes")
    for version, message in ((2, "already"), (0, "already")):
        with pytest.raises(StoreError, match=message):
            store.add_model(ModelRecord(version, 1.0, 1, None, None, True), b"")
    with pytest.raises(StoreError, match="no model 9"):
        store.activate(9, meta={"pinned": "no"})
    assert (store.active_model(), store.meta("pinned")) == (0, "yes")


def test_settings_are_kept_with_what_they_belong_to(store: Store) -> None:
    store.add_minutes([Minute(60.0, {"clicks": 1.0})], {"totals": "1"})
    store.add_minutes([], {"totals": "2"})
    store.put_items("q", [NewItem("a", (1.0,))], 5.0, meta={"features": "one"}, flush=False)
    with pytest.raises(StoreError, match="2 features"):
        store.put_items("q", [NewItem("b", (1.0, 2.0))], 6.0, meta={"features": "two"})
    assert store.settings() == {"features": "one", "totals": "2"}


def test_settings_are_kept(store: Store) -> None:
    store.set_meta("features", "[1]")
    store.set_meta("a", "")
    store.set_meta("features", "☂")
    assert store.meta("features") == "☂"
    assert store.settings() == {"a": "", "features": "☂"}


def test_a_roll_up_may_keep_minutes_longer_than_entries(store: Store) -> None:
    store.add_minutes([Minute(start, {"clicks": 1.0}) for start in (0.0, 60.0, 120.0)])
    store.roll_up(120.0, minutes_before=60.0)
    assert [minute.start for minute in store.minutes(0.0)] == [60.0, 120.0]
    store.roll_up(120.0)
    assert [minute.start for minute in store.minutes(0.0)] == [120.0]
