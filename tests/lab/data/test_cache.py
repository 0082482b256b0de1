from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from ebrank.errors import DataError
from ebrank.lab.data import assembly, cache, letor
from ebrank.lab.data.dataset import Dataset

TEXT = "".join(f"{i % 3} qid:{i // 4} 1:{i} 3:{i / 7}\n" for i in range(40))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EBRANK_DATASET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return what counts how often text is parsed."""
    spy = Mock(wraps=assembly.parse_files)
    monkeypatch.setattr(assembly, "parse_files", spy)
    return spy


def same(one: Dataset, other: Dataset) -> bool:
    names = ("features", "labels", "query_pointers", "query_ids", "query_splits", "baseline")
    return one.name == other.name and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        and getattr(one, name).dtype == getattr(other, name).dtype
        for name in names
    )


def entry(root: Path) -> Path:
    (path,) = root.iterdir()
    return path


def test_the_second_read_parses_nothing(root: Path, file: Path, parses: Mock) -> None:
    plain = letor.read(file, cache=False)
    assert not root.exists()
    first, second = letor.read(file), letor.read(file)
    assert same(plain, first)
    assert same(first, second)
    assert not any(data.features.flags.writeable for data in (plain, first, second))
    assert letor.read(file, baseline_feature=3, max_label=7).baseline[7] == 1
    assert letor.parse(file).files[0].rows == 40
    assert parses.call_count == 2


def test_the_second_read_does_not_load_the_compiler(root: Path, file: Path) -> None:
    letor.read(file)
    code = (
        "import sys; from ebrank.lab.data import letor; letor.read(sys.argv[1]);"
        "sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)


def test_a_changed_file_is_parsed_anew(root: Path, file: Path, parses: Mock) -> None:
    letor.read(file)
    status = file.stat()
    file.write_text(TEXT.replace("1:17 ", "1:71 "))  # of equal size
    assert file.stat().st_size == status.st_size
    os.utime(file, ns=(1, status.st_mtime_ns + 1))
    assert letor.read(file).features[17, 0] == 71
    file.write_text(TEXT + TEXT.replace("qid:", "qid:x"))
    os.utime(file, ns=(1, status.st_mtime_ns + 1))  # of equal time
    assert letor.read(file).n_rows == 80
    assert letor.read(file).n_rows == 80
    assert parses.call_count == 3
    entry(root)  # the old one was replaced


def test_the_time_of_change_is_taken_before_reading(root: Path, file: Path) -> None:
    def change(done: int, total: int) -> None:
        file.write_text(TEXT.replace("1:17 ", "1:71 "))
        os.utime(file, ns=(1, 1))

    assert letor.read(file, progress=change).features[17, 0] == 17
    assert letor.read(file).features[17, 0] == 71


FILES = (*cache.ARRAYS, cache.MANIFEST)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_of_an_entry_is_noticed(root: Path, file: Path, name: str) -> None:
    letor.read(file)
    path = entry(root) / name
    content = path.read_bytes()
    for position in {*range(min(len(content), 300)), len(content) - 1}:
        path.write_bytes(content[:position])
        assert cache.load([file]) is None
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        assert cache.load([file]) is None


DAMAGES: dict[str, Callable[[Path], object]] = {
    **{f"{name} is empty": lambda entry, name=name: os.truncate(entry / name, 0) for name in FILES},  # type: ignore[misc]
    "no labels": lambda entry: (entry / "labels").unlink(),
    "no manifest": lambda entry: (entry / cache.MANIFEST).unlink(),
    "gone": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_again(root: Path, file: Path, parses: Mock, damage: str) -> None:
    whole = letor.read(file, cache=False)
    letor.read(file)
    DAMAGES[damage](entry(root))
    assert same(letor.read(file), whole)
    assert parses.call_count == 3
    assert same(letor.read(file), whole)
    assert parses.call_count == 3
    entry(root)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are texts elsewhere")
def test_a_name_may_be_any_bytes(root: Path, file: Path, parses: Mock) -> None:
    odd = file.rename(os.fsdecode(os.fsencode(file.with_name("caf")) + b"\xe9.txt"))
    assert letor.read(odd).n_rows == letor.read(odd).n_rows == 40
    assert parses.call_count == 1


@pytest.mark.parametrize("text", ["0 qid:1 1:1\n0 qid:1\n", ""])
def test_nothing_is_kept_of_bad_text(root: Path, file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(DataError):
        letor.read(file)
    assert not root.exists()


@pytest.mark.parametrize("full", [False, True])
def test_a_cache_that_cannot_be_written_is_done_without(
    root: Path, file: Path, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    if full:
        problem = os.strerror(errno.ENOSPC)
        write = Mock(side_effect=OSError(errno.ENOSPC, problem))
        monkeypatch.setattr(Path, "write_bytes", write)
    else:
        problem = os.strerror(errno.ENOTDIR)
        monkeypatch.setenv("EBRANK_DATASET_CACHE", str(file / "cache"))
    with pytest.warns(RuntimeWarning, match=f"not cached: .*{problem}.*EBRANK_DATASET_CACHE"):
        data = letor.read(file)
    assert same(data, letor.read(file, cache=False))
    assert not root.exists() or list(root.iterdir()) == []


def test_several_writers_all_end_well(root: Path, file: Path) -> None:
    parsed = assembly.parse_files([file])

    def write(times: int) -> None:
        for _ in range(times):
            cache.save(parsed)
            found = cache.load([file])
            assert found is None or np.array_equal(found.features, parsed.features)

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, [15] * 4))
    assert cache.load([file]) is not None
    entry(root)  # and nothing else is left
