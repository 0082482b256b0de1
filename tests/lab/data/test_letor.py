from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from ebrank.errors import DataError, ParameterError
from ebrank.lab.data import assembly
from ebrank.lab.data.dataset import SPLITS
from ebrank.lab.data.interpretation import AUTO, Auto
from ebrank.lab.data.letor import parse, read, totals
from ebrank.lab.data.preparation import prepare
from ebrank.lab.data.published import DatasetNote

GOOD = b"0 qid:1 1:1\n# comment\n\n1 qid:1 1:2\n"  # four lines, two rows


def refusal(path: Path, data: bytes, max_label: int | Auto = AUTO) -> DataError:
    path.write_bytes(data)
    with pytest.raises(DataError) as error:
        read(path, max_label=max_label)
    assert error.value.path == str(path)
    assert error.value.remedy
    return error.value


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.txt"


BAD_TOKENS = {
    "{} qid:2 1:1": (
        "{} is not a label",
        ["qid:2", "x", "1.5", "-1", "31", "9" * 23],
    ),
    "1 {} 1:1": ("{} is not a query id", ["qid:", "1:1", "qid:a\x01"]),
    "1{}": ("'' is not a query id", [""]),
    "1 qid:{}": ("'qid:aaaa", ["a" * 257]),
    "1 qid:2{}": ("row has no features", ["", " # 1:1"]),
    "1 qid:2 {}": ("{} is not a feature", [":5", "5", "0:5", "100001:5"]),
    "1 qid:2 3:5 {}:6": ("does not come after the one before it", ["3", "1"]),
    "1 qid:2 1:5 7:{} 8:1": (
        "value {} of feature 7 is not a finite 32-bit number",
        ["", "x", "nan", "1e39"],
    ),
    "1 qid:2 7:1{}": ("not text: byte 0x00 in column 12", ["\0"]),
    "1 qid:2 7:1 # {}": ("not text: byte 0x00 in column 15", ["\0"]),
}
BAD_LINES = [
    *(
        (line.format(token).encode(), problem.format(repr(token)))
        for line, (problem, tokens) in BAD_TOKENS.items()
        for token in tokens
    ),
    (b"1 qid:\xff 7:1", "not text: byte 0xff in column 7"),
    (b"\x89PNG\r", "not text: byte 0x89 in column 1"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "problem"), BAD_LINES)
@pytest.mark.parametrize("follow", [b"\n", b""])
def test_a_bad_line_is_named(file: Path, line: bytes, problem: str, follow: bytes) -> None:
    for text in (GOOD + line + follow, gzip.compress(GOOD + line + follow)):
        error = refusal(file, text)
        assert problem in error.problem
        assert error.line == 5


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"", 1, "file is empty"),
        (b"\n\n# nothing\n", 3, "file has no rows"),
        (gzip.compress(b""), 1, "file has no rows"),
        (gzip.compress(GOOD)[:-8], 5, "gzip data is truncated"),
        (gzip.compress(GOOD)[:5], 1, "gzip data is truncated"),
        (gzip.compress(GOOD + b"x\n")[:-8], 5, "'x' is not a label"),
        (gzip.compress(GOOD)[:-8] + b"12345678", 5, "gzip data is damaged"),
        (b"\x1f\x8bnothing like gzip", 1, "gzip data is damaged"),
        (gzip.compress(GOOD) + b"behind", 5, "gzip data is damaged"),
        (gzip.compress(GOOD) + bytes(3 << 20) + gzip.compress(b"x"), 5, "'x' is not a label"),
        ("0 qid:1 1:1\n".encode("utf-16"), 1, "not text: byte 0xff in column 1"),
        (GOOD + b"0 qid:2 1:1\n0 qid:1 1:3\n", 6, "query '1' reappears after other queries; it "),
    ],
    ids=range(12),
)
def test_a_bad_file_is_named(file: Path, data: bytes, line: int, problem: str) -> None:
    error = refusal(file, data)
    assert error.line == line
    assert problem in error.problem


def test_a_line_may_exceed_a_chunk_but_not_the_limit(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"0 qid:1 1:1\n1 qid:1 1:1 # " + b"x" * 1000 + b"\n"
    file.write_bytes(text)
    assert assembly.parse_files([file], chunk_size=10).labels.tolist() == [0, 1]
    monkeypatch.setattr(assembly, "MAX_LINE", 900)
    with pytest.raises(DataError, match="line is longer than 900 bytes"):
        assembly.parse_files([file], chunk_size=10)


def test_labels_over_the_maximum(file: Path) -> None:
    text = b"0 qid:1 1:1\n\n3 qid:1 1:1\n4 qid:1 1:1\n3 qid:1 1:1\n"
    assert refusal(file, text, max_label=2).line == 3
    assert refusal(file, text, max_label=3).line == 4
    assert read(file, max_label=10).max_label == 10
    assert read(file).max_label == 4
    assert refusal(file, text, max_label=2).line == 3, "also from the cache"
    with pytest.raises(ParameterError, match="max_label"):
        read(file, max_label=31)


def test_the_baseline_is_a_feature(file: Path) -> None:
    file.write_bytes(b"2 qid:1 1:1 2:5\n3 qid:1 1:7\n")
    assert read(file).baseline.tolist() == [0, 0]
    assert read(file, baseline_feature=2).baseline.tolist() == [5, 0]
    file.write_bytes(b"2 qid:1 110:3 136:1\n")
    with pytest.warns(DatasetNote, match="136 features, like MSLR-WEB") as notes:
        data = read(file)
    assert notes[0].filename == __file__
    assert data.baseline.tolist() == [3]
    assert (data.n_features, data.behavior_features) == (136, (134, 135, 136)), "to be dropped"


def test_one_file_is_the_training_split(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf2\tqid:x/1   1:1 \t3:-2.5e-1 # c\r\n 0 qid:\xc3\xa9 2:+.5 3:3.")
    data = read(str(file))
    assert data.features.tolist() == [[1, 0, -0.25], [0, 0.5, 3]]
    assert data.labels.tolist() == [2, 0]
    assert data.query_ids.tolist() == ["x/1", "é"]
    assert data.query_pointers.tolist() == [0, 1, 2]
    assert data.query_splits.tolist() == [0, 0]
    assert data.feature_ids.tolist() == [1, 2, 3]
    assert data.name == "data"
    dtypes = [data.features.dtype, data.labels.dtype, data.query_pointers.dtype]
    assert dtypes == [np.float32, np.int8, np.int64]


def write_fold(folder: Path, train: bytes, vali: bytes, test: bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / "train.txt").write_bytes(train)
    (folder / "vali.txt.gz").write_bytes(gzip.compress(vali))
    (folder / "test.txt").write_bytes(test)
    return folder


def test_a_folder_has_three_splits(tmp_path: Path) -> None:
    fold = write_fold(
        tmp_path / "Mine" / "Fold3",
        b"0 qid:1 1:1\n1 qid:2 2:2\n",
        b"3 qid:3 1:3\n0 qid:3 1:1\n",
        b"1 qid:4 4:4\n",
    )
    data = read(fold)
    assert data.name == "Mine/Fold3"
    assert data.query_splits.tolist() == [0, 0, 1, 2]
    assert data.features[:, :2].tolist() == [[1, 0], [0, 2], [3, 0], [1, 0], [0, 0]]
    assert data.features[:, 2:].tolist() == [[0, 0]] * 4 + [[0, 4]]
    assert data.rows_in("vali") == slice(2, 4)
    files = parse(fold).files
    assert [totals([file]) for file in files] == [
        {"queries": 2, "rows": 2, "features": 2, "max_label": 1},
        {"queries": 1, "rows": 2, "features": 1, "max_label": 3},
        {"queries": 1, "rows": 1, "features": 4, "max_label": 1},
    ]
    assert totals(files) == {"queries": 4, "rows": 5, "features": 4, "max_label": 3}


def test_what_does_not_fit_or_cannot_be_read_is_named(tmp_path: Path) -> None:
    fold = write_fold(
        tmp_path / "Fold1", b"0 qid:1 1:1\n0 qid:2 1:1\n", b"0 qid:3 1:1\n", b"\n0 qid:2 1:1\n"
    )
    place = rf"test.txt:2: query '2' is already in {fold / 'train.txt'}:2"
    with pytest.raises(DataError, match=place):
        read(fold)
    (fold / "test.txt").unlink()
    with pytest.raises(DataError, match=r"no test\.txt in this folder.*plain or as \.txt\.gz"):
        read(fold)
    with pytest.raises(DataError, match=rf"Name one of its folds, such as {fold}"):
        read(tmp_path)
    (fold / "test.txt").mkdir()
    with pytest.raises(DataError, match=r"test\.txt: cannot be read: Is a directory"):
        read(fold)
    with pytest.raises(DataError, match=r"gone\.txt: cannot be read: No such file"):
        read(tmp_path / "gone.txt")


def without_validation(folder: Path, order: Iterable[int] = range(50)) -> Path:
    """Write a folder of 50 training queries, in some order, and a test query."""
    train = "".join(f"1 qid:q{i} 1:{i}\n" for i in order).encode()
    write_fold(folder, train, b"1 qid:none 1:1\n", b"1 qid:t 1:1\n")
    (folder / "vali.txt.gz").unlink()
    return folder


def test_validation_is_carved_out_of_training_where_there_is_none(tmp_path: Path) -> None:
    folder = without_validation(tmp_path / "a")
    with pytest.warns(DatasetNote) as notes:
        data = read(folder)
    assert [str(note.message) for note in notes] == [
        "a has no vali.txt. 10 of its 50 training queries, chosen by a hash of their ids, are its "
        "validation queries."
    ]
    assert [len(data.queries_in(split)) for split in SPLITS] == [40, 10, 1]
    assert data.query_ids[data.queries_in("test")].tolist() == ["t"]
    carved = set(data.query_ids[data.queries_in("vali")].tolist())
    assert carved != {f"q{i}" for i in range(10)}
    with pytest.warns(DatasetNote, match="no vali"):
        other = read(without_validation(tmp_path / "b", reversed(range(50))), cache=False)
    assert set(other.query_ids[other.queries_in("vali")].tolist()) == carved
    (folder / "vali.txt").write_bytes(b"1 qid:v 1:1\n")
    assert [len(read(folder).queries_in(split)) for split in SPLITS] == [50, 1, 1]


def test_a_single_training_query_stays_one(tmp_path: Path) -> None:
    with pytest.warns(DatasetNote, match="0 of its 1 training queries"):
        assert read(without_validation(tmp_path / "a", range(1))).query_splits.tolist() == [0, 2]


def test_published_folders_need_all_files(tmp_path: Path) -> None:
    folder = without_validation(tmp_path / "MQ2008" / "Fold1")
    with pytest.raises(DataError, match=r"no vali\.txt in this folder\. Each fold of MQ2008 has"):
        read(folder)


def test_progress_counts_bytes_of_all_files(tmp_path: Path) -> None:
    fold = write_fold(tmp_path / "f", b"0 qid:1 1:1\n", b"0 qid:2 1:1\n", b"0 qid:3 1:1\n")
    total = sum(path.stat().st_size for path in fold.iterdir())
    calls: list[tuple[int, int]] = []
    read(fold, progress=lambda done, all_: calls.append((done, all_)))
    assert [of for _, of in calls] == [total] * 3
    assert [done for done, _ in calls] == sorted({done for done, _ in calls})
    assert calls[-1][0] == total


@pytest.mark.parametrize(
    ("fixture", "features", "splits", "prepared"),
    [
        ("mq2008_folder", 46, [(471, 9_630), (157, 2_707), (156, 2_874)], (14_422, 40)),
        ("mslr_sample_folder", 136, [(125, 14_164), (18, 1_734), (30, 3_074)], (18_972, 128)),
    ],
)
@pytest.mark.filterwarnings("ignore::ebrank.lab.data.published.DatasetNote")
def test_real_data(
    fixture: str,
    features: int,
    splits: list[tuple[int, int]],
    prepared: tuple[int, int],
    request: pytest.FixtureRequest,
) -> None:
    """What is in each file, as scikit-learn reads it, and what the protocol leaves."""
    from sklearn.datasets import load_svmlight_file

    folder: Path = request.getfixturevalue(fixture)
    files, data = parse(folder).files, read(folder)
    assert [(file.queries, file.rows) for file in files] == splits
    assert {file.features for file in files} == {features}
    test = data.rows_in("test")
    theirs, labels, ids = load_svmlight_file(
        str(folder / "test.txt"), query_id=True, n_features=features, zero_based=False
    )
    np.testing.assert_array_equal(data.features[test], theirs.toarray().astype(np.float32))
    np.testing.assert_array_equal(data.labels[test], labels)
    np.testing.assert_array_equal(np.repeat(data.query_ids.astype(int), data.candidates)[test], ids)
    left = prepare(data)
    assert (left.n_rows, left.n_features) == prepared
