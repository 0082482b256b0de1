"""Settings and sums of minutes, as dictionaries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ebrank.service.store.memory.kept import Kept
from ebrank.service.store.records import Minute
from ebrank.service.store.rows import added


class MemoryMeta:
    """Settings that belong to the data, and sums of minutes."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def get(self, key: str) -> str | None:
        """Return a setting."""
        return self._kept.meta.get(key)

    async def all(self) -> dict[str, str]:
        """Return all settings, in the order of their names."""
        return dict(sorted(self._kept.meta.items()))

    async def set(self, values: Mapping[str, str], minutes: Sequence[Minute] = ()) -> None:
        """Keep settings, and add the sums of some minutes to those kept."""
        self._kept.meta |= values
        for minute in minutes:
            kept = self._kept.minutes.setdefault(minute.start, {})
            for name, value in minute.values.items():
                kept[name] = kept.get(name, 0.0) + value

    async def add(
        self, key: str, numbers: Mapping[str, int], minutes: Sequence[Minute] = ()
    ) -> dict[str, int]:
        """Add to the numbers that a setting holds, as JSON, and return the new ones."""
        sums = added(self._kept.meta.get(key), numbers)
        await self.set({key: json.dumps(sums)}, minutes)
        return sums

    async def settle(self, values: Mapping[str, str]) -> dict[str, str]:
        """Keep the settings that are not set yet; return the current value of each."""
        self._kept.meta = {**values, **self._kept.meta}
        return {key: self._kept.meta[key] for key in values}

    async def sums(self, since: float, width: float) -> list[Minute]:
        """Return the sums of the minutes since a time, added up over spans of some seconds."""
        spans: dict[float, Minute] = {}
        for minute in await self.minutes(since):
            start = minute.start // width * width
            sums = spans.setdefault(start, Minute(start)).values
            for name, value in minute.values.items():
                sums[name] = sums.get(name, 0.0) + value
        return list(spans.values())

    async def minutes(self, since: float) -> list[Minute]:
        """Return the sums of the minutes since a time, in order."""
        kept = sorted((start, v) for start, v in self._kept.minutes.items() if start >= since)
        return [Minute(start, dict(values)) for start, values in kept]
