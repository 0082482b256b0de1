from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ebrank.data.cache import content_hash
from ebrank.data.text_reader import TextReader
from ebrank.errors import DataError

texts = st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\r\n", b"long" * 5])).map(b"".join)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources") / "text"


def chunks(path: Path, size: int = 10, max_line: int = 10**6) -> tuple[list[bytes], str]:
    with TextReader(path) as source:
        found = list(source.chunks(size, max_line))
        if not source.problem:
            assert source.content_hash == content_hash(path)
            assert source.consumed == source.size == path.stat().st_size
        return found, source.problem


@given(
    members=st.lists(texts, min_size=1, max_size=3),
    zipped=st.booleans(),
    padding=st.integers(0, 3),
    size=st.integers(1, 40),
)
@settings(deadline=None)
def test_chunks_are_whole_lines_of_all_the_text(
    members: list[bytes], zipped: bool, padding: int, size: int, path: Path
) -> None:
    if zipped:
        path.write_bytes(b"".join(gzip.compress(m) + bytes(padding) for m in members))
    else:
        path.write_bytes(b"".join(members))
    found, problem = chunks(path, size)
    assert problem == ""
    assert b"".join(found) == b"".join(members)
    assert all(chunk.endswith(b"\n") for chunk in found[:-1])
    assert all(found)


@pytest.mark.parametrize("size", [1, 10, 1 << 20])
@pytest.mark.parametrize("cut", [1, 8, 9, 20])
def test_truncated_gzip_gives_its_whole_lines_first(path: Path, size: int, cut: int) -> None:
    text = b"".join(b"line %d %d\n" % (i, i * i) for i in range(1000))
    path.write_bytes(gzip.compress(text)[:-cut])
    found, problem = chunks(path, size)
    assert problem == "gzip data is truncated"
    assert len(b"".join(found)) > len(text) // 2
    assert text.startswith(b"".join(found))
    assert found[-1].endswith(b"\n")


def test_damaged_gzip_and_foreign_bytes_behind_it(path: Path) -> None:
    zipped = bytearray(gzip.compress(b"a\nb\n"))
    zipped[-6] ^= 1  # the checksum of the text
    path.write_bytes(zipped)
    assert "gzip data is damaged" in chunks(path)[1]
    path.write_bytes(gzip.compress(b"a\nb\n") + b"behind")
    found, problem = chunks(path)
    assert b"".join(found) == b"a\nb\n"
    assert "gzip data is damaged" in problem


def test_zeros_may_pad_gzip_members_at_any_length(path: Path) -> None:
    path.write_bytes(gzip.compress(b"a\n") + bytes(3 << 20) + gzip.compress(b"b\n"))
    found, problem = chunks(path)
    assert (b"".join(found), problem) == (b"a\nb\n", "")


def test_a_line_may_exceed_a_chunk_but_not_the_limit(path: Path) -> None:
    path.write_bytes(b"short\n" + b"x" * 1000 + b"\nshort\n")
    assert chunks(path, 10, 1000)[1] == ""
    found, problem = chunks(path, 10, 900)
    assert b"".join(found) == b"short\n"
    assert problem == "line is longer than 900 bytes"


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone: cannot be read: No such file"):
        TextReader(tmp_path / "gone")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        TextReader(tmp_path)
