"""The store's page lists the columns that exports really have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ebrank.service.ops.transfer import tables

PAGE = Path(__file__).parents[1] / "docs/store.md"


@pytest.mark.parametrize("table", tables.TABLES)
def test_the_columns_of_a_table(table: str) -> None:
    found = re.search(rf"\| `{table}\.parquet` \| ([^:|]*)", PAGE.read_text())
    assert found is not None
    listed = re.sub(r"\([^)]*\)", "", found.group(1)).replace(",", " ").split()
    expected = [field.name + "?" * field.nullable for field in tables.schema(table)]
    assert listed == expected
