"""The versions of the prior, as a dictionary."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from ebrank.service.store.base import StoreError
from ebrank.service.store.memory.kept import Kept
from ebrank.service.store.records import ModelRecord


class MemoryModels:
    """The versions of the prior."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def all(self) -> list[ModelRecord]:
        """Return all versions, oldest first."""
        return [record for _, (record, _) in sorted(self._kept.models.items())]

    async def document(self, version: int) -> bytes | None:
        """Return the file of a version."""
        return self._kept.models[version][1] if version in self._kept.models else None

    async def active(self) -> int:
        """Return the active version, 0 before any training."""
        return self._kept.active_model

    async def add(
        self,
        record: ModelRecord,
        document: bytes,
        *,
        instead_of: int | None = None,
        unless: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a version and its file; return whether it is now the active one."""
        if record.version in self._kept.models or record.version < 1:
            raise StoreError(f"there is a model {record.version} already")
        free = instead_of in (None, self._kept.active_model)
        held = any(self._kept.meta.get(key) == value for key, value in (unless or {}).items())
        live = record.activated and free and not held
        kept = dataclasses.replace(record, activated=live)
        self._kept.models[record.version] = (kept, document)
        if live:
            self._kept.active_model = record.version
        return live

    async def remove(self, versions: Sequence[int]) -> None:
        """Remove versions and their files; the active one cannot be removed."""
        if self._kept.active_model in versions:
            raise StoreError(f"model {self._kept.active_model} is active and cannot be removed")
        for version in versions:
            self._kept.models.pop(version, None)

    async def activate(self, version: int, *, meta: Mapping[str, str] | None = None) -> None:
        """Activate a version; 0 goes back to before any training."""
        if version and version not in self._kept.models:
            raise StoreError(f"there is no model {version}")
        self._kept.active_model = version
        self._kept.meta |= meta or {}
        if version:
            record, document = self._kept.models[version]
            self._kept.models[version] = (dataclasses.replace(record, activated=True), document)
