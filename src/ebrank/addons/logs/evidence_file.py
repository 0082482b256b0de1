"""Evidence as a Parquet file: how often each item was shown and what came of it, by slot.

The same rows give the same bytes, no matter which engine made them: they are in order, and split
into groups of the same length.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import msgspec

from ebrank.addons.tables import arrow, parquet_file
from ebrank.environment.files import whole_file
from ebrank.errors import DataError
from ebrank.evidence import Behaviors

FORMAT, VERSION = "ebrank evidence", 1
ROWS_IN_GROUP = 65_536
COLUMNS = ("query", "item", "outcome", "slot", "count", "first")


class EvidenceMetadata(msgspec.Struct):
    """The metadata of a file of evidence: what was counted, and the latest time of the log."""

    behaviors: dict[str, float]
    negative: tuple[str, ...] = ()
    impressions: str = "confirmed"
    last_time: float | None = None
    format: str = FORMAT
    version: int = VERSION

    @classmethod
    def of(cls, behaviors: Behaviors, impressions: str, last_time: float | None) -> Self:
        """Return the metadata of evidence that counts these behaviors."""
        weights = dict(zip(behaviors.names, behaviors.weights, strict=True))
        return cls(weights, behaviors.negative, impressions, last_time)


def schema(about: EvidenceMetadata | None = None) -> Any:  # noqa: ANN401 (pyarrow has no types)
    """Return the columns of the file."""
    pa = arrow()
    kinds = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.float64())
    fields = [
        pa.field(name, kind, nullable=name == "first")
        for name, kind in zip(COLUMNS, kinds, strict=True)
    ]
    return pa.schema(
        fields, metadata=None if about is None else {"ebrank": msgspec.json.encode(about)}
    )


def write(path: Path, about: EvidenceMetadata, tables: Iterable[Any]) -> int:
    """Write tables of rows, which are in order, to a new file; return how many rows there are.

    It appears when it is complete. Only its owner can read it.
    """
    pa = arrow()
    columns, count = schema(about), 0
    with (
        whole_file(path, private=True) as temporary,
        pa.parquet.ParquetWriter(temporary, columns, compression="zstd") as file,
    ):
        waiting = columns.empty_table()
        for table in tables:
            waiting = pa.concat_tables([waiting, table.select(list(COLUMNS)).cast(columns)])
            while len(waiting) >= ROWS_IN_GROUP:
                file.write_table(waiting.slice(0, ROWS_IN_GROUP).combine_chunks())
                waiting, count = waiting.slice(ROWS_IN_GROUP), count + ROWS_IN_GROUP
        file.write_table(waiting.combine_chunks())
    return count + len(waiting)


def is_evidence(path: str | os.PathLike[str]) -> bool:
    """Return whether a path names an evidence file, by its name alone."""
    return Path(path).suffix == ".parquet"


def read_table(path: Path) -> tuple[EvidenceMetadata, Any]:
    """Return a file's metadata, and its rows as an Arrow table."""
    with parquet_file(path) as file:
        metadata = file.schema_arrow.metadata or {}
        about = _about(path, metadata.get(b"ebrank"))
        if not file.schema_arrow.equals(schema()):
            raise _foreign(path, "its columns are not those of evidence")
        return about, file.read()


def _about(path: Path, text: bytes | None) -> EvidenceMetadata:
    try:
        about = msgspec.json.decode(text or b"", type=EvidenceMetadata)
    except msgspec.DecodeError:
        raise _foreign(path, "it does not say what was counted") from None
    if about.format != FORMAT:
        raise _foreign(path, "its metadata says something else")
    if about.version != VERSION:
        raise DataError(
            f"evidence of version {about.version}; this ebrank reads {VERSION}",
            path=path,
            remedy="Upgrade ebrank.",
        )
    return about


def _foreign(path: Path, why: str) -> DataError:
    return DataError(
        f"not a file of evidence: {why}", path=path, remedy="Make one with `ebrank aggregate`."
    )
