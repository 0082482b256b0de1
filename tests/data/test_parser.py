"""The parser: what is written is read to the last bit, and anything else is refused by its line."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebrank.data import parser
from ebrank.data.parser import parse_files
from ebrank.errors import DataError

Rows = list[tuple[int, str, dict[int, str]]]
"""Label, query and values as they are written, by feature."""

digits = st.text("0123456789", min_size=1, max_size=22)
numbers = st.builds(
    lambda sign, whole, fraction, exponent: sign + whole + fraction + exponent,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.one_of(st.just(""), st.just("."), digits.map(".{}".format)),
    st.one_of(st.just(""), st.integers(-60, 14).map("e{}".format), st.just("E+05")),
)
features = st.dictionaries(st.integers(1, 40), numbers, min_size=1, max_size=6)
some_rows = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["1", "a/b", "é", "-"]), features),
    min_size=1,
    max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: row[1]))


def text_of(rows: Rows, ends: list[str]) -> bytes:
    """Write rows, whose lines end with comments, blanks and empty lines in turn."""
    lines = []
    for at, (label, query, values) in enumerate(rows):
        pairs = " ".join(f"{feature}:{values[feature]}" for feature in sorted(values))
        lines.append(f"{label} qid:{query}\t {pairs}{ends[at % len(ends)]}")
    return "\n".join(lines).encode()


def packed(data: bytes, members: int) -> bytes:
    """Return a text as it is, or as gzip in some members, padded with zeros."""
    size = len(data) // max(members, 1) + 1
    parts = (data[at * size : (at + 1) * size] for at in range(members))
    return b"".join(gzip.compress(part) + bytes(members) for part in parts) or data


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parser") / "text.txt"


def agree(path: Path, rows: Rows) -> None:
    """Assert that a file holds these rows; a value too large for a float32 is refused."""
    width = max(max(values) for _, _, values in rows)
    expected = np.zeros((len(rows), width), np.float32)
    with np.errstate(over="ignore"):
        for own, (_, _, values) in zip(expected, rows, strict=True):
            for feature, token in values.items():
                own[feature - 1] = np.float32(float(token))
    if not np.isfinite(expected).all():
        with pytest.raises(DataError, match="is not a finite 32-bit number"):
            parse_files([path])
        return
    parsed = parse_files([path])
    assert parsed.features.tobytes() == expected.tobytes()  # also the sign of zero
    assert not parsed.features.flags.writeable
    assert parsed.labels.tolist() == [label for label, _, _ in rows]
    names = [query for _, query, _ in rows]
    assert parsed.query_ids.tolist() == list(dict.fromkeys(names))
    starts = [names.index(query) for query in dict.fromkeys(names)]
    assert parsed.query_pointers.tolist() == [*starts, len(rows)]


def refusal(path: Path) -> DataError | None:
    try:
        parse_files([path])
    except DataError as error:
        return error
    return None


ENDS = ["", "\n", " # a 1:x", "#", "\t", "\r", "\n\n# only\n"]


@pytest.mark.slow
@given(some_rows, st.lists(st.sampled_from(ENDS), min_size=1, max_size=4), st.integers(0, 3))
@settings(max_examples=300)
def test_what_is_written_is_read(path: Path, rows: Rows, ends: list[str], members: int) -> None:
    path.write_bytes(packed(b"\xef\xbb\xbf" * (members % 2) + text_of(rows, ends), members))
    agree(path, rows)


def test_a_table_grows_with_its_rows(path: Path) -> None:
    rows = [(i % 3, f"{i // 7}", {1 + i % 5: f"{i}", 10 + i // 300: "1"}) for i in range(1000)]
    path.write_bytes(text_of(rows, [""]))
    agree(path, rows)


FRAGMENTS = [
    *(b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b":", b"\0", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf"),
    *(b"\x7f", b"\x0b", b"31", b"-1", b"1.0", b"qid:1", b"qid:2", b"qid:", b"q", b"qid:\xff"),
    *(b"1:", b"1:0.5", b"2:-3e2", b"3:1e40", b"6:.", b"7:1e", b"0:1", b"100001:1", b"9:nan"),
    *(b"0 qid:1 1:1\n", b"1 qid:2 1:2 2:2\n", b"2 qid:3 3:1.5e-7 # c\n", b"# only\n"),
]
anything = st.one_of(
    st.binary(max_size=60), st.lists(st.sampled_from(FRAGMENTS), max_size=25).map(b"".join)
)


@pytest.mark.slow
@given(anything, st.integers(0, 3))
@example(b"\xef\xbb", 0)
@example(b"9" * 5000 + b" qid:1 1:1", 0)
@example(b"0 qid:1 " + b"9" * 5000 + b":1", 0)
@settings(max_examples=300)
def test_anything_else_is_refused_by_its_line(path: Path, data: bytes, members: int) -> None:
    path.write_bytes(packed(data, members))
    error = refusal(path)
    if error is not None:
        assert error.line is not None
        assert 1 <= error.line <= data.count(b"\n") + 1
        assert error.remedy


def test_a_table_of_hardly_anything_but_zeros_is_refused(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(parser, "SPARSE_BYTES", 10_000)
    path.write_bytes(b"0 qid:1 " + b" ".join(b"%d:1" % i for i in range(1, 2001)))
    assert parse_files([path]).features.shape == (1, 2000)
    path.write_bytes(b"0 qid:1 2000:1\n" * 10)
    with pytest.raises(DataError, match="rows of 2,000 features have too few values"):
        parse_files([path])
