from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank.data import assembly
from ebrank.data.assembly import FeatureTable
from ebrank.errors import DataError

row = st.dictionaries(st.integers(1, 9), st.integers(1, 99), min_size=1, max_size=4)
blocks = st.lists(st.lists(row, max_size=5), min_size=1, max_size=4).filter(any)


def append(table: FeatureTable, rows: list[dict[int, int]]) -> None:
    pairs = [pair for row in rows for pair in sorted(row.items())]
    table.append(
        np.cumsum([len(row) for row in rows], dtype=np.int64),
        np.array([feature for feature, _ in pairs], np.int32),
        np.array([value for _, value in pairs], np.float32),
    )


def dense(rows: list[dict[int, int]]) -> npt.NDArray[np.float32]:
    whole = np.zeros((len(rows), max(max(row) for row in rows)), np.float32)
    for i, values in enumerate(rows):
        for feature, value in values.items():
            whole[i, feature - 1] = value
    return whole


@given(content=blocks, in_file=st.booleans(), block=st.sampled_from([1, 40, 4 << 20]))
@settings(deadline=None)
def test_blocks_of_any_width_become_one_table(
    content: list[list[dict[int, int]]],
    in_file: bool,
    block: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "table"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "BLOCK", block)
        table = FeatureTable(path if in_file else None)
        for rows in content:
            append(table, rows)
        whole = table.finish()
    expected = dense([row for rows in content for row in rows])
    np.testing.assert_array_equal(whole, expected)
    assert whole.dtype == np.float32
    assert not whole.flags.writeable
    if in_file:
        assert path.read_bytes() == expected.tobytes()


def test_a_table_of_hardly_anything_but_zeros_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "SPARSE_BYTES", 10_000)
    append(FeatureTable(None), [dict.fromkeys(range(1, 2001), 1)] * 10)
    with pytest.raises(DataError, match="10 rows of 2,000 features have too few values"):
        append(FeatureTable(None), [{2000: 1}] * 10)


def test_a_table_larger_than_memory_needs_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(assembly, "_memory", lambda: 100)
    table = FeatureTable(tmp_path / "table")
    append(table, [{30: 1}])
    assert table.finish().shape == (1, 30)
    with pytest.raises(DataError, match="1 rows of 30 features do not fit in memory"):
        append(FeatureTable(None), [{30: 1}])
