"""Loading by preset, by catalog name and by path; and what is said when that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebrank.lab.data
from ebrank.errors import DataError, EBRankError, ParameterError
from ebrank.lab.data import load, prepare, published
from ebrank.lab.data.dataset import SPLITS, Origin
from ebrank.lab.data.published import DatasetNote, DatasetWarning, Size
from tests.cli import commands

SILENT: dict[str, Any] = {"baseline_feature": 1, "drop_features": (), "max_label": 2}
"""All that a note could be on."""


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder but the test's own, and no relative paths but into the test's folder."""
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def write_fold(folder: Path, n_features: int = 46) -> Path:
    """Write a tiny fold: two queries of seven items per file, with three features that vary."""
    return commands.write_fold(folder, queries=2, items=7, features=n_features)


def publish(monkeypatch: pytest.MonkeyPatch, name: str, *queries: int) -> None:
    """Let a published dataset have files of so many queries of seven items."""
    entry = published.find(name)
    assert entry is not None
    sizes = [Size(count, 7 * count) for count in queries]
    changed = replace(entry, first_fold=dict(zip(SPLITS, sizes, strict=True)))
    monkeypatch.setattr(published, "PUBLISHED", (changed,))


def test_a_preset_is_generated_and_prepared() -> None:
    dataset = load("MQ2007-like", scale=0.02, seed=4)
    again = prepare(ebrank.lab.data.generate("mq2007-like", scale=0.02, seed=4))
    np.testing.assert_array_equal(dataset.features, again.features)
    assert (dataset.features.min(), dataset.features.max()) == (0, 1)
    assert dataset.origin == Origin("mq2007-like", preset=True, scale=0.02)
    other = load("mq2007-like", scale=0.02, drop_features=[1], interactions=0.25)
    assert other.name == "mq2007-like×0.02-interactions0.25"
    assert 1 not in other.feature_ids


def test_names_and_aliases_are_found_in_any_case_and_are_unambiguous() -> None:
    found = [
        (name.casefold(), published.find(name.upper()), each)
        for each in published.PUBLISHED
        for name in (each.name, *each.aliases)
    ]
    assert len({name for name, _, _ in found}) == len(found)
    assert all(one is each for _, one, each in found)


def test_a_catalog_name_needs_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fold(tmp_path / "MSLR-WEB10K", 136)
    publish(monkeypatch, "MSLR-WEB10K", 2, 2, 2)
    dataset = load("MSLR-WEB10K", data_dir=tmp_path)
    assert (dataset.n_features, dataset.max_label) == (2, 4), "without the last"
    dataset = load("MSLR-WEB10K", data_dir=tmp_path, drop_features=())
    assert dataset.n_features == 3
    assert dataset.origin == Origin("MSLR-WEB10K", fold=1)


@pytest.mark.parametrize(
    ("names", "fold", "problem"),
    [
        (["fold2", "Fold10"], 2, None),
        (["fold2", "Fold10"], None, "mine: no fold 1 here, only fold2, Fold10. Choose one with"),
        (
            ["fold2", "Fold10"],
            3,
            "mine: no fold 3 here, only fold2, Fold10. Choose one with --fold",
        ),
        (["Fold1", "Fold2"], None, None),
        (["Fold1", "Fold2"], 2, "Fold2/train.txt:1: file is empty"),
        (["."], 1, None),
        (["."], 3, "mine: no fold 3 here, only files that are not in folds."),
    ],
)
def test_a_folder_of_folds_stands_for_the_chosen_one(
    names: list[str], fold: int | None, problem: str | None, tmp_path: Path
) -> None:
    for name in names:
        folder = write_fold(tmp_path / "mine" / name)
        if name == "Fold2":
            (folder / "train.txt").write_text("")
    if problem is None:
        assert load(tmp_path / "mine", fold=fold, **SILENT).n_queries == 6
        return
    with pytest.raises(EBRankError) as caught:
        load(tmp_path / "mine", fold=fold)
    assert problem in str(caught.value)


@pytest.mark.parametrize("folder", ["MQ2007/Fold1", "mq2007", "mq-2007/fold1"])
@pytest.mark.filterwarnings("ignore::ebrank.lab.data.published.DatasetWarning")
def test_a_catalog_name_is_found_under_the_data_folder(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fold(tmp_path / "data" / folder)
    (tmp_path / "data" / "MQ2007").mkdir(exist_ok=True)  # one without data hides no other
    dataset = load("mq2007", data_dir=tmp_path / "data")
    assert (dataset.name, dataset.n_queries) == ("MQ2007", 6)
    monkeypatch.setenv("EBRANK_DATA", str(tmp_path / "data"))
    assert load("MQ2007").n_rows == dataset.n_rows
    with pytest.raises(DataError, match="no fold 2 here, only "):
        load("MQ2007", fold=2)


@pytest.mark.parametrize(
    ("folder", "first", "count"),
    [
        ("MQ2008/Fold1", ["(train): 2 queries, expected 471", "(train): 14 rows, expected 9,6"], 6),
        ("MQ2008/Fold2", ["(all): 6 queries, expected 784", "(all): 42 rows, expected 15,211"], 2),
    ],
)
def test_counts_other_than_published_are_warned_of(
    folder: str, first: list[str], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_fold(tmp_path / folder))  # which tells the fold, too
    with pytest.warns(DatasetWarning) as caught:
        load(".")
    assert len(caught) == count
    for warning, text in zip(caught, first, strict=False):
        assert str(warning.message).startswith(f"MQ2008 {text}")
        assert warning.filename == __file__


def test_other_features_than_the_name_says_are_warned_of(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "MQ2008" / "Fold1", 136)
    with (
        pytest.warns(DatasetWarning, match="MQ2008: 136 features, expected 46"),
        pytest.warns(DatasetNote, match="136 features, like MSLR-WEB"),
    ):
        load(folder)


def test_a_missing_dataset_is_told_where_it_was_sought_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load("MSLR-10K")
    for part in ("MSLR-WEB10K was not found", "no data folder is set", "microsoft.com"):
        assert part in str(caught.value)
    for part in ("--data-dir", "EBRANK_DATA"):
        assert part in str(caught.value)
    with pytest.raises(DataError, match=r"not in .*MSLR-WEB10K/Fold1 \(data folder from --data-"):
        load("MSLR-10K", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"/nowhere \(from --data-dir\) does not exist"):
        load("MSLR-10K", data_dir="/nowhere")
    (write_fold(tmp_path / "MSLR-WEB10K" / "Fold1") / "vali.txt").unlink()
    with pytest.raises(DataError, match=r"no vali\.txt in this folder"):
        load("MSLR-10K", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("MQ2077", "Did you mean MQ2007? Known names: MQ2007, "),
        ("mq2007-lik", "Did you mean mq2007-like?"),
        ("no/such/folder", "no/such/folder: no such dataset or folder"),
        ("file.txt", "file.txt: this is not a folder"),
    ],
)
def test_an_unknown_source_is_told_the_known_ones(
    source: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "file.txt").touch()
    with pytest.raises(DataError) as caught:
        load(source)
    assert message in str(caught.value)


PRESET: dict[str, Any] = {"source": "mq2007-like", "scale": 0.01}
WRONG = (
    PRESET | {"drop_features": 5},
    *(PRESET | {"baseline_feature": 3}, PRESET | {"max_label": 2}),
    *(PRESET | {"fold": 1}, PRESET | {"data_dir": "x"}),
    *({"source": "mine", option: 0.5} for option in ("scale", "interactions")),
    *({"source": "mine", "fold": fold} for fold in (0, -1, "a", 1.5, True)),
    *({"source": "MQ2007", "fold": True}, {"source": "MQ2007", "data_dir": 5}),
    *({"source": None}, {"source": None, "scale": 0.1}, {"source": ""}),
)


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_a_wrong_argument_is_told_in_words(options: dict[str, Any], tmp_path: Path) -> None:
    write_fold(tmp_path / "mine")
    said = r" is not a path| must be a | works only with (synthetic presets|files), not with "
    with pytest.raises(ParameterError, match=said):
        load(**options)


@pytest.mark.parametrize(
    ("folder", "fold"), [("MQ2007/Fold1", 1), ("MQ2007/Fold2", 2), ("MQ2007", 1)]
)
def test_the_origin_of_published_files_is_told_by_their_content(
    folder: str, fold: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fold(tmp_path / folder)
    with pytest.warns(DatasetWarning):
        other = load(tmp_path / folder).origin
    assert other is not None
    assert (other.name, other.published) == ("MQ2007", False)
    assert "expected" in other.differences[0]
    publish(monkeypatch, "MQ2007", 2, 2, 2)
    expected = Origin("MQ2007", fold=fold)
    assert load(tmp_path / folder, max_label=3).origin == expected
    assert expected.published


def test_a_whole_dataset_split_otherwise_has_no_known_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fold(tmp_path / "MQ2007")
    publish(monkeypatch, "MQ2007", 3, 1, 2)
    assert load(tmp_path / "MQ2007").origin == Origin("MQ2007")
