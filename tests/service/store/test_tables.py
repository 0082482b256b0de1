"""Tables are declared once: the docs say the same of an export."""

from __future__ import annotations

from pathlib import Path

from ebrank.service.store.tables import EXPORTED, TABLES

DOCS = Path(__file__).parents[3] / "docs" / "store.md"


def test_the_docs_name_the_columns_of_an_export() -> None:
    docs = DOCS.read_text(encoding="utf-8")
    for table in TABLES:
        if table.leaves:
            pairs = (column.split(":") for column in EXPORTED[table.name])
            columns = ", ".join(name + "?" * kind.endswith("?") for name, kind in pairs)
            about = f": {table.about}" if table.about else ""
            assert f"| `{table.name}.parquet` | {columns}{about} |" in docs
