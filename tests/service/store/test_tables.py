"""Tables are declared once: the docs say the same of an export."""

from __future__ import annotations

from pathlib import Path

from ebrank.service.store.tables import described

DOCS = Path(__file__).parents[3] / "docs" / "store.md"


def test_the_docs_name_the_columns_of_an_export() -> None:
    assert described() in DOCS.read_text(encoding="utf-8")
