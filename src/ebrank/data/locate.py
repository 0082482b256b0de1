"""Find out what a source names, and where its files are.

Under the data folder a dataset lies as `NAME/Fold1/{train,vali,test}.txt`, or as `NAME/` with the
three files directly in it; the letter case of folders does not matter.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ebrank.data.catalog import ENTRIES, Entry, Size, differences, entry_of, find, fold_of
from ebrank.data.dataset import SPLITS
from ebrank.errors import DataError, ParameterError
from ebrank.parameters import check_whole
from ebrank.paths import expanded
from ebrank.settings import DataDir, config_path
from ebrank.settings import data_dir as chosen_data_dir

_FILES = "train.txt, vali.txt and test.txt"


@dataclass(frozen=True)
class Place:
    """A folder with the three files of a fold, and which published dataset it is, if known."""

    folder: Path
    entry: Entry | None


def preset_named(source: str | os.PathLike[str]) -> str | None:
    """Return the preset that a source names, or None."""
    from ebrank.data.presets import PRESETS

    name = source.casefold() if isinstance(source, str) else None
    return name if name in PRESETS else None


def place_of(
    source: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    fold: int | None = None,
) -> Place:
    """Return where the files of a catalogue name or path are; an error says where they are not."""
    check_whole("fold", fold, at_least=1, optional=True)
    entry = find(source) if isinstance(source, str) else None
    if entry is not None:
        root = chosen_data_dir(data_dir)
        folder = locate(entry, root, fold or 1)
        if folder is None:
            raise missing(entry, root, fold or 1)
        return Place(folder, entry)
    path = expanded(source)
    if not path.exists():
        raise DataError("no such dataset or folder", path=source, remedy=_nearest(path))
    if not path.is_dir():
        raise DataError("this is not a folder", path=path, remedy=f"Name the one with {_FILES}.")
    if holds_splits(path):
        refuse_fold(fold, path)
        return Place(path, entry_of(path.absolute()))
    folder = fold_folder(path, fold or 1)
    # A folder without the files is left to the reader, which says best what is missing.
    return Place(folder or path, entry_of((folder or path).absolute()))


def refuse_fold(fold: int | None, path: Path) -> None:
    """Raise if a fold is chosen where there is no choice."""
    if fold is not None:
        raise ParameterError(
            f"fold chooses among the folders Fold1, Fold2, …; {path} is read as it is"
        )


def holds_splits(folder: Path) -> bool:
    """Return whether the three files of a fold are in this folder."""
    from ebrank.data.letor import text_files

    try:
        return folder.is_dir() and bool(text_files(folder))
    except DataError:
        return False


def fold_folder(folder: Path, fold: int) -> Path | None:
    """Return the folder with the files of this fold: `folder/FoldN`, else None."""
    inner = _child(folder, f"Fold{fold}")
    return inner if inner is not None and holds_splits(inner) else None


def locate(entry: Entry, data_dir: DataDir | None, fold: int = 1) -> Path | None:
    """Return the folder with this dataset's files, or None if it is not in the data folder."""
    if data_dir is None:
        return None
    for name in (entry.name, *entry.aliases):
        folder = _child(data_dir.path, name)
        if folder is None:
            continue
        found = fold_folder(folder, fold)
        if found is None and fold == 1 and holds_splits(folder):
            found = folder
        if found is not None:
            return found
    return None


def differences_at(place: Place, sizes: Mapping[str, Size], n_features: int) -> list[str]:
    """Return what differs from the catalogue: sizes per file in fold 1, in all elsewhere.

    `sizes` are those of the files at hand, by split.
    """
    if place.entry is None:
        return []
    expected = place.entry.family.n_features
    if n_features != expected:
        return [f"{place.entry.name}: {n_features} features, expected {expected}"]
    if fold_of(place.folder.absolute()) == 1:
        return differences(place.entry, sizes.items())
    if len(sizes) < len(SPLITS):
        return []
    whole = Size(
        queries=sum(size.queries for size in sizes.values()),
        rows=sum(size.rows for size in sizes.values()),
    )
    return differences(place.entry, [("all", whole)])


def missing(entry: Entry, data_dir: DataDir | None, fold: int = 1) -> DataError:
    """Return the error for a dataset that is not there: where it was sought and how to get it."""
    return DataError(
        f"{entry.name} was not found: {sought(entry, data_dir, fold)}",
        remedy=f"Download it from Microsoft Research ({entry.page}); {how_to_place(entry)}",
    )


def sought(entry: Entry, data_dir: DataDir | None, fold: int = 1) -> str:
    """Return where a dataset was looked for, in words."""
    if data_dir is None:
        return "no data folder is set"
    if not data_dir.path.is_dir():
        return f"the data folder {data_dir.path} (from {data_dir.origin}) does not exist"
    place = data_dir.path / entry.name / f"Fold{fold}"
    return f"{_FILES} are not in {place} (data folder from {data_dir.origin})"


def how_to_place(entry: Entry) -> str:
    """Return how to tell ebrank where a downloaded dataset is."""
    return (
        f"unpack it to DATA/{entry.name}/Fold1 and name DATA by --data-dir (data_dir= in Python), "
        f'by the environment variable EBRANK_DATA, or by data_dir = "DATA" in {config_path()}'
    )


def _nearest(path: Path) -> str:
    from ebrank.data.presets import PRESETS

    known = [*(entry.name for entry in ENTRIES), *PRESETS]
    close = difflib.get_close_matches(path.name, known, n=1)
    guess = f"Did you mean {close[0]}? " if close else ""
    return f"{guess}Known names: {', '.join(known)}; or give the path of a fold folder."


def _child(folder: Path, name: str) -> Path | None:
    """Return the entry of `folder` with this name, exact if there is one, else in any case."""
    exact = folder / name
    if exact.exists():
        return exact
    if not folder.is_dir():
        return None
    wanted = name.casefold()
    return next((path for path in sorted(folder.iterdir()) if path.name.casefold() == wanted), None)
