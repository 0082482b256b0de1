"""Loading by preset, by catalog name and by path; and what is said when that fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebrank.data
from ebrank.data import load, prepare, published
from ebrank.data.dataset import SPLITS, Origin
from ebrank.data.published import DatasetNote, DatasetWarning, Size
from ebrank.errors import DataError, ParameterError

SILENT: dict[str, Any] = {"baseline_feature": 1, "drop_features": (), "max_label": 2}
"""All that a note could be on."""


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No data folder but the test's own, and no relative paths but into the test's folder."""
    (tmp_path / "config.toml").write_text("")
    monkeypatch.setenv("EBRANK_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.delenv("EBRANK_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def lines(rng: np.random.Generator, query: str, n_features: int) -> Iterator[str]:
    for label in (0, 1, 2, 0, 1, 0, 2):
        values = " ".join(f"{i + 1}:{value:.3f}" for i, value in enumerate(rng.random(n_features)))
        yield f"{label} qid:{query} {values}\n"


def write_fold(folder: Path, n_features: int) -> Path:
    """Write a tiny fold: two queries of seven items per file."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(3)
    for split in SPLITS:
        text = "".join(line for q in "ab" for line in lines(rng, f"{split}-{q}", n_features))
        (folder / f"{split}.txt").write_text(text)
    return folder


def publish(monkeypatch: pytest.MonkeyPatch, name: str, *sizes: Size) -> None:
    """Let a published dataset have files of these sizes."""
    entry = published.find(name)
    assert entry is not None
    changed = replace(entry, first_fold=dict(zip(SPLITS, sizes, strict=True)))
    monkeypatch.setattr(published, "PUBLISHED", (changed,))


def test_a_preset_is_generated_and_prepared() -> None:
    dataset = load("MQ2007-like", scale=0.02, seed=4)
    again = prepare(ebrank.data.generate("mq2007-like", scale=0.02, seed=4))
    assert dataset.n_queries == again.n_queries
    np.testing.assert_array_equal(dataset.features, again.features)
    assert dataset.features.min() == 0
    assert dataset.features.max() == 1


@pytest.mark.parametrize(("features", "baseline", "kept"), [(46, 25, 46), (136, 110, 133)])
def test_a_path_is_recognized_by_its_features_and_says_so(
    features: int, baseline: int, kept: int, tmp_path: Path
) -> None:
    write_fold(tmp_path / "mine", features)
    with pytest.warns(DatasetNote, match=f"mine has {features} features, like ") as notes:
        dataset = load(tmp_path / "mine")
    assert [note.filename for note in notes] == [__file__]
    raw = ebrank.data.read(tmp_path / "mine", **SILENT)
    assert (dataset.n_queries, dataset.n_rows, dataset.n_features) == (6, 42, kept)
    np.testing.assert_array_equal(dataset.baseline, raw.features[:, baseline - 1])


@pytest.mark.filterwarnings("error")
def test_a_catalog_name_needs_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fold(tmp_path / "MSLR-WEB10K", 136)
    publish(monkeypatch, "MSLR-WEB10K", Size(2, 14), Size(2, 14), Size(2, 14))
    dataset = load("MSLR-WEB10K", data_dir=tmp_path)
    assert (dataset.n_features, dataset.max_label) == (133, 4)
    dataset = load("MSLR-WEB10K", data_dir=tmp_path, drop_features=())
    assert dataset.n_features == 136
    assert dataset.origin == Origin("MSLR-WEB10K", fold=1, options=(("drop_features", "none"),))


def test_the_cache_serves_every_choice(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", 136)
    for baseline, dropped, max_label in ((1, (), 2), (2, (136,), 3), (None, (1, 2), 4)):
        dataset = load(
            folder, baseline_feature=baseline, drop_features=dropped, max_label=max_label
        )
        assert dataset.max_label == max_label
        assert set(dataset.feature_ids.tolist()) == set(range(1, 137)) - set(dropped)
        raw = ebrank.data.read(folder, **SILENT, cache=False)
        expected = np.zeros(42) if baseline is None else raw.features[:, baseline - 1]
        np.testing.assert_array_equal(dataset.baseline, expected)


def test_a_folder_of_folds_stands_for_the_chosen_one(tmp_path: Path) -> None:
    for name in ("fold2", "Fold10"):
        write_fold(tmp_path / "mine" / name, 46)
    assert load(tmp_path / "mine", fold=2, **SILENT).n_queries == 6
    for fold in (None, 1, 3):
        with pytest.raises(DataError) as caught:
            load(tmp_path / "mine", fold=fold)
        assert caught.value.problem == f"no fold {fold or 1} here, only fold2, Fold10"
        assert caught.value.path == str(tmp_path / "mine")
        assert "--fold" in caught.value.remedy


def test_the_first_fold_is_taken_unless_another_is_chosen(tmp_path: Path) -> None:
    for fold in ("Fold1", "Fold2"):
        write_fold(tmp_path / "mine" / fold, 46)
    (tmp_path / "mine" / "Fold2" / "train.txt").write_text("")
    assert load(tmp_path / "mine", **SILENT).n_queries == 6
    assert load(tmp_path / "mine", fold=1, **SILENT).n_queries == 6
    with pytest.raises(DataError, match="file is empty"):
        load(tmp_path / "mine", fold=2)


@pytest.mark.parametrize("fold", [0, -1, "a", 1.5, True])
def test_a_fold_is_a_whole_number_from_one(fold: Any, tmp_path: Path) -> None:  # noqa: ANN401
    write_fold(tmp_path / "mine" / "Fold1", 46)
    for source in (tmp_path / "mine", tmp_path / "mine" / "Fold1", "MQ2007"):
        with pytest.raises(ParameterError, match="fold must be a whole number of 1 or more"):
            load(source, fold=fold)


def test_a_fold_is_refused_where_there_is_no_choice(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine" / "Fold1", 46)
    with pytest.raises(ParameterError, match=r"fold selects one of .*mine/Fold1 has none"):
        load(folder, fold=3)


@pytest.mark.parametrize("folder", ["MQ2007/Fold1", "mq2007", "mq-2007/fold1"])
@pytest.mark.filterwarnings("ignore::ebrank.data.published.DatasetWarning")
def test_a_catalog_name_is_found_under_the_data_folder(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fold(tmp_path / "data" / folder, 46)
    dataset = load("mq2007", data_dir=tmp_path / "data")
    assert dataset.name == "MQ2007"
    assert dataset.n_queries == 6
    monkeypatch.setenv("EBRANK_DATA", str(tmp_path / "data"))
    assert load("MQ2007").n_rows == dataset.n_rows


def test_an_unnumbered_fold_is_the_first_only(tmp_path: Path) -> None:
    write_fold(tmp_path / "MQ2007", 46)
    with pytest.raises(DataError, match=r"MQ2007: no fold 2 here: the files are not in folds"):
        load("MQ2007", data_dir=tmp_path, fold=2)


def test_counts_other_than_published_are_warned_of(tmp_path: Path) -> None:
    write_fold(tmp_path / "MQ2008" / "Fold1", 46)
    with pytest.warns(DatasetWarning) as caught:
        load("MQ2008", data_dir=tmp_path)
    told = [str(warning.message) for warning in caught]
    assert told[:2] == [
        "MQ2008 (train): 2 queries, expected 471",
        "MQ2008 (train): 14 rows, expected 9,630",
    ]
    assert len(told) == 6
    assert all(warning.filename == __file__ for warning in caught)


def test_the_working_directory_tells_the_fold_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_fold(tmp_path / "MQ2008" / "Fold1", 46))
    with pytest.warns(DatasetWarning, match=r"MQ2008 \((train|vali|test)\)"):
        load(".")


def test_counts_in_all_are_compared_for_other_folds(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "MQ2008" / "Fold2", 46)
    with pytest.warns(DatasetWarning) as caught:
        load(folder)
    assert [str(warning.message) for warning in caught] == [
        "MQ2008 (all): 6 queries, expected 784",
        "MQ2008 (all): 42 rows, expected 15,211",
    ]


def test_other_features_than_the_name_says_are_warned_of(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "MQ2008" / "Fold1", 136)
    with (
        pytest.warns(DatasetWarning, match="MQ2008: 136 features, expected 46"),
        pytest.warns(DatasetNote, match="136 features, like MSLR-WEB"),
    ):
        load(folder)


def test_a_baseline_is_optional_and_its_lack_is_said(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", 5)
    with pytest.warns(DatasetNote, match=r"mine has no known baseline, .* --baseline-feature"):
        dataset = load(folder)
    assert dataset.n_features == 5
    assert not dataset.baseline.any()
    assert not load(folder, baseline_feature=None).baseline.any()
    dataset = load(folder, baseline_feature=2, drop_features=[5])
    assert dataset.feature_ids.tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(dataset.baseline, ebrank.data.read(folder).features[:, 1])


def test_a_missing_dataset_is_told_where_it_was_sought_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load("MSLR-10K")
    for part in ("MSLR-WEB10K was not found", "no data folder is set", "microsoft.com"):
        assert part in str(caught.value)
    for part in ("--data-dir", "EBRANK_DATA", "data_dir = ", "config.toml"):
        assert part in str(caught.value)
    with pytest.raises(DataError, match=r"not in .*MSLR-WEB10K/Fold1 \(data folder from --data-"):
        load("MSLR-10K", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"/nowhere \(from --data-dir\) does not exist"):
        load("MSLR-10K", data_dir="/nowhere")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("MQ2077", "Did you mean MQ2007?"),
        ("mq2007-lik", "Did you mean mq2007-like?"),
        ("no/such/folder", "no/such/folder: no such dataset or folder"),
    ],
)
def test_an_unknown_source_is_told_the_known_ones(source: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        load(source)
    assert message in str(caught.value)
    assert "MSLR-WEB30K, mq2007-like" in str(caught.value)


def test_a_file_is_not_a_fold(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("1 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"train\.txt: this is not a folder"):
        load(tmp_path / "train.txt")


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    folder = write_fold(tmp_path / "mine", 46)
    with pytest.raises(ParameterError, match="scale works only with synthetic presets"):
        load(folder, scale=0.5)
    with pytest.raises(ParameterError, match="interactions works only with synthetic presets"):
        load(folder, interactions=0.5)
    options: dict[str, Any]
    for options in ({"baseline_feature": 3}, {"max_label": 2}, {"fold": 1}, {"data_dir": "x"}):
        with pytest.raises(ParameterError, match=f"{next(iter(options))} works only with files"):
            load("mq2007-like", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"source": "mq2007-like", "scale": "a"},
        {"source": "mq2007-like", "interactions": "a"},
        {"source": "mq2007-like", "seed": 1.5},
        {"source": "mq2007-like", "threads": 0},
        {"source": "mq2007-like", "scale": 0.01, "drop_features": 5},
        {"source": "mine", "baseline_feature": 1.5},
        {"source": "mine", "max_label": "a"},
        {"source": "mine", "drop_features": 5},
        {"source": "mine", "threads": -3},
        {"source": None},
        {"source": None, "scale": 0.1},
        {"source": ""},
        {"source": "MQ2007", "data_dir": 5},
    ],
    ids=str,
)
def test_a_wrong_argument_is_told_in_words(options: dict[str, Any], tmp_path: Path) -> None:
    write_fold(tmp_path / "mine", 46)
    with pytest.raises(ParameterError, match=r" is not a path| must be a | only with synthetic "):
        load(**options)


def test_real_data_by_name_has_the_published_counts(mq2008_folder: Path) -> None:
    dataset = load("mq2008", data_dir=mq2008_folder.parents[1])
    assert repr(dataset) == "Dataset('MQ2008', queries=731, rows=14422, features=40, max_label=2)"


def test_public_names_are_there() -> None:
    import ebrank.data

    assert all(callable(getattr(ebrank.data, name)) for name in ebrank.data.__all__)
    assert set(ebrank.data.__all__) <= set(dir(ebrank.data))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        ebrank.data.nothing  # noqa: B018


def test_the_origin_of_a_preset_and_of_other_files(tmp_path: Path) -> None:
    assert load("MQ2007-like", scale=0.02).origin == Origin("mq2007-like", preset=True, scale=0.02)
    assert load(write_fold(tmp_path / "mq2007-like", 46), **SILENT).origin is None
    dropped = load("mq2007-like", scale=0.02, drop_features=[1]).origin
    assert dropped is not None
    assert dropped.options == (("drop_features", "1"),)
    products = load("mq2007-like", scale=0.02, interactions=0.25).origin
    assert products is not None
    assert products.options == (("interactions", "0.25"),)


@pytest.mark.parametrize(
    ("folder", "fold"), [("MQ2007/Fold1", 1), ("MQ2007/Fold2", 2), ("MQ2007", 1)]
)
def test_the_origin_of_published_files_is_told_by_their_content(
    folder: str, fold: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fold(tmp_path / folder, 46)
    with pytest.warns(DatasetWarning):
        other = load(tmp_path / folder).origin
    assert other is not None
    assert (other.name, other.published) == ("MQ2007", False)
    assert "expected" in other.differences[0]
    publish(monkeypatch, "MQ2007", Size(2, 14), Size(2, 14), Size(2, 14))
    expected = Origin("MQ2007", fold=fold, options=(("max_label", "3"),))
    assert load(tmp_path / folder, max_label=3).origin == expected
    assert expected.published


def test_a_whole_dataset_split_otherwise_has_no_known_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_fold(tmp_path / "MQ2007", 46)
    publish(monkeypatch, "MQ2007", Size(3, 21), Size(1, 7), Size(2, 14))
    assert load(tmp_path / "MQ2007").origin == Origin("MQ2007")
