"""The compiled parser and the table it fills against a slow and obvious parser."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ebrank.errors import DataError
from ebrank.lab.data import assembly
from ebrank.lab.data.assembly import parse_files
from ebrank.lab.data.parser import parse

QUERY = re.compile(rb"qid:([^\x00-\x20\x7f#]{1,256})")
FEATURE = re.compile(
    rb"([0-9]+):([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)", re.DOTALL
)


@dataclass
class Slow:
    """What the slow parser made of a text."""

    labels: list[int] = field(default_factory=list)
    label_lines: dict[int, int] = field(default_factory=dict)
    query_ids: list[str] = field(default_factory=list)
    pointers: list[int] = field(default_factory=list)
    rows: list[dict[int, np.float32]] = field(default_factory=list)
    bad_line: int | None = None

    def features(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        table = np.zeros((len(self.rows), max(max(row) for row in self.rows)), np.float32)
        for row, values in zip(table, self.rows, strict=True):
            for feature, value in values.items():
                row[feature - 1] = value
        return table


def slow_parse(data: bytes) -> Slow:
    result = Slow()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            slow_row(line, number, result)
        except (AssertionError, UnicodeDecodeError):
            result.bad_line = number
            return result
    if not result.rows:
        result.bad_line = max(len(lines), 1)
    return result


def slow_row(line: bytes, number: int, result: Slow) -> None:
    assert b"\0" not in line
    content = line.removesuffix(b"\r").partition(b"#")[0]
    tokens = [token for token in re.split(rb"[ \t]+", content) if token]
    if not tokens:
        return
    assert len(tokens) >= 3
    label = re.fullmatch(rb"([0-9]+)(\.0*)?", tokens[0])
    assert label
    assert int(label[1]) <= 30
    query = QUERY.fullmatch(tokens[1])
    assert query
    query_id = query[1].decode()
    row: dict[int, np.float32] = {}
    for token in tokens[2:]:
        pair = FEATURE.fullmatch(token)
        assert pair
        feature = int(pair[1])
        assert 1 <= feature <= 100_000
        assert feature > max(row, default=0)
        with np.errstate(over="ignore"):
            row[feature] = np.float32(float(pair[2]))
        assert np.isfinite(row[feature])
    if [query_id] != result.query_ids[-1:]:
        assert query_id not in result.query_ids
        result.query_ids.append(query_id)
        result.pointers.append(len(result.rows))
    result.labels.append(int(label[1]))
    result.label_lines.setdefault(int(label[1]), number)
    result.rows.append(row)


def packed(data: bytes, members: int) -> bytes:
    """Return a text as it is, or as gzip in some members, padded with zeros."""
    size = len(data) // max(members, 1) + 1
    parts = (data[at * size : (at + 1) * size] for at in range(members))
    return b"".join(gzip.compress(part) + bytes(members) for part in parts) or data


def agree(path: Path, data: bytes, chunk_size: int, threads: int) -> None:
    slow = slow_parse(data)
    if slow.bad_line is not None:
        with pytest.raises(DataError) as refusal:
            parse_files([path], threads=threads, chunk_size=chunk_size)
        assert (refusal.value.line, refusal.value.path) == (slow.bad_line, str(path))
        return
    fast = parse_files([path], threads=threads, chunk_size=chunk_size)
    assert fast.labels.tolist() == slow.labels
    assert fast.query_ids.tolist() == slow.query_ids
    assert fast.query_pointers.tolist() == [*slow.pointers, len(slow.rows)]
    expected = slow.features()
    assert fast.features.shape == expected.shape
    assert fast.features.tobytes() == expected.tobytes()  # also the sign of zero
    assert not fast.features.flags.writeable
    [file] = fast.files
    assert (file.rows, file.queries) == (len(slow.rows), len(slow.query_ids))
    lines = enumerate(file.label_lines)
    assert {label: line for label, line in lines if line} == slow.label_lines


FRAGMENTS = [
    *(b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b":", b"\0", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf"),
    *(b"\x7f", b"\x1f", b"\x0b"),
    *(b"0", b"2", b"31", b"-1", b"1.0", b"qid:1", b"qid:2", b"qid:", b"qid", b"q", b"qid:\xff"),
    *(b"1:", b"1:0.5", b"2:-3e2", b"3:1e40", b"4:.5", b"5:5.", b"6:.", b"7:1e", b"8:+1e-50"),
    *(b"0:1", b"100000:1", b"100001:1", b"9:nan", b"9:inf", b"9:0x1", b"9:1_0", b"9:1e+", b"x"),
    *(b"0 qid:1 1:1\n", b"1 qid:2 1:2 2:2\n", b"2 qid:3 3:1.5e-7 # c\n", b"# only\n", b"\n"),
    *(b"1 qid:4 1:123456789012345678901234567890.5\n", b"0 qid:1 1:1 2:3.4028236e38\n"),
]
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map(b"".join)

digits = st.text("0123456789", min_size=1, max_size=22)
numbers = st.builds(
    lambda sign, whole, fraction, exponent: sign + whole + fraction + exponent,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.one_of(st.just(""), st.just("."), digits.map(".{}".format)),
    st.one_of(st.just(""), st.integers(-60, 14).map("e{}".format), st.just("E+05")),
)


@st.composite
def valid_texts(draw: st.DrawFn, value: st.SearchStrategy[str] = numbers) -> bytes:
    lines = []
    for query in range(draw(st.integers(1, 5))):
        for _ in range(draw(st.integers(1, 4))):
            ids = draw(st.lists(st.integers(1, 40), min_size=1, max_size=6, unique=True))
            pairs = " ".join(f"{feature}:{draw(value)}" for feature in sorted(ids))
            comment = draw(st.sampled_from(["", " # a 1:x", "#", "\t", "\r"]))
            lines.append(f"{draw(st.integers(0, 30))} qid:{query} {pairs}{comment}")
    return "\n".join(lines).encode() + draw(st.sampled_from([b"", b"\n", b"\n\n"]))


@st.composite
def damaged_texts(draw: st.DrawFn) -> bytes:
    text: bytes = draw(valid_texts())
    start = draw(st.integers(0, len(text)))
    stop = min(len(text), start + draw(st.integers(0, 3)))
    return text[:start] + draw(st.sampled_from([b"", *FRAGMENTS])) + text[stop:]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parser") / "text.txt"


anything = st.one_of(st.binary(max_size=60), fragments, valid_texts(), damaged_texts())


@pytest.mark.slow
@given(
    data=anything,
    chunk_size=st.integers(1, 80),
    threads=st.sampled_from([1, 3]),
    members=st.integers(0, 3),
)
@example(b"", 9, 1, 0)
@example(b"\xef\xbb\xbf0 qid:1 1:1", 1, 1, 0)
@example(b"\xef\xbb", 1, 1, 0)
@example(b"0 qid:1 1:1\r", 5, 1, 0)
@example(b"0. qid:1 1:1\n2.00 qid:1 1:1\n1.5 qid:1 1:1", 5, 1, 0)
@example(b"0 qid:1 1:1 #\0", 50, 1, 0)
@example(b"0 qid:1 1:1e40\n0 qid:1 1:x\n", 50, 1, 0)
@example(b"0 qid:\xff 1:1\n0 qid:1 1:x\n", 50, 1, 0)
@example(b"0 qid:a 1:1\n0 qid:b 1:1e40\n0 qid:a 1:1\n", 50, 1, 0)
@settings(max_examples=300)
def test_rows_or_refusal_are_those_of_a_slow_parser(
    path: Path, data: bytes, chunk_size: int, threads: int, members: int
) -> None:
    """Whatever the text, however it is packed and cut."""
    path.write_bytes(packed(data, members))
    agree(path, data, chunk_size, threads)


@pytest.mark.slow
@given(st.lists(numbers, min_size=1, max_size=50))
@settings(max_examples=300)
def test_values_are_rounded_as_python_rounds_them(tokens: list[str]) -> None:
    text = "0 qid:1 " + " ".join(f"{i}:{token}" for i, token in enumerate(tokens, 1))
    with np.errstate(over="ignore"):
        expected = np.array([float(token) for token in tokens]).astype(np.float32)
    chunk = parse(text.encode())
    if np.isinf(expected).any():
        assert chunk.bad_line is not None
        assert "is not a finite 32-bit number" in chunk.bad_line.problem
    else:
        assert chunk.bad_line is None
        assert chunk.columns.values.tobytes() == expected.tobytes()


@given(st.floats(2.0**-40, 2.0**40, width=32), st.integers(-3, 3))
@settings(max_examples=300)
def test_values_halfway_between_two_floats_are_exact(value: float, nudge: int) -> None:
    """Here one unit in the last place of a double decides which float32 is next."""
    halfway = (float(np.nextafter(np.float32(value), np.float32(np.inf))) + value) / 2
    tokens = [f"{halfway:.{digits}e}" for digits in (14, 15, 16, 17, 18, 25)]
    whole, _, exponent = tokens[3].partition("e")
    tokens += [f"{int(whole.replace('.', '')) + nudge}e{int(exponent) - 17}", f"{halfway:.15f}"]
    chunk = parse(("0 qid:1 " + " ".join(f"{i}:{t}" for i, t in enumerate(tokens, 1))).encode())
    assert chunk.columns.values.tolist() == [np.float32(float(token)) for token in tokens]


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_room_suffices_for_the_shortest_rows(count: int) -> None:
    rows = parse(b"0 qid:1 1:0\n" * count)
    assert len(rows.columns.labels) == count
    entries = parse(b"0 qid:1 " + b" ".join(b"%d:0" % i for i in range(1, count + 1)))
    assert entries.columns.ids.tolist() == list(range(1, count + 1))


def test_a_table_of_hardly_anything_but_zeros_is_refused(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(assembly, "SPARSE_BYTES", 10_000)
    path.write_bytes(b"0 qid:1 " + b" ".join(b"%d:1" % i for i in range(1, 2001)))
    assert parse_files([path]).features.shape == (1, 2000)
    path.write_bytes(b"0 qid:1 2000:1\n" * 10)
    with pytest.raises(DataError, match="10 rows of 2,000 features have too few values"):
        parse_files([path])
