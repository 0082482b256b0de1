"""Find out what a source names, and where its files are.

Under the data folder a dataset lies as `NAME/Fold1/{train,vali,test}.txt`, or as `NAME/` with the
three files directly in it. Letter case does not matter.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ebrank.data.catalog import ENTRIES, Entry, entry_of, find
from ebrank.errors import DataError
from ebrank.settings import DataDir, config_path
from ebrank.settings import data_dir as chosen_data_dir

SPLIT_FILES = ("train.txt", "vali.txt", "test.txt")


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
    source: str | os.PathLike[str], *, data_dir: str | os.PathLike[str] | None = None, fold: int = 1
) -> Place:
    """Return where the files of a catalogue name or path are; an error says where they are not."""
    entry = find(source) if isinstance(source, str) else None
    if entry is not None:
        root = chosen_data_dir(data_dir)
        folder = locate(entry, root, fold)
        if folder is None:
            raise missing(entry, root, fold)
        return Place(folder, entry)
    path = Path(source).expanduser()
    if not path.exists():
        raise DataError(f"there is no dataset, preset or folder {source!r}", remedy=_nearest(path))
    if not path.is_dir():
        raise DataError(
            "this is not a folder", path=path, remedy=f"Name the one with {_listed(SPLIT_FILES)}."
        )
    folder = path if holds_splits(path) else fold_folder(path, fold)
    if folder is None:
        raise DataError(f"the folder lacks {_listed(_absent(path))}", path=path)
    return Place(folder, entry_of(folder.resolve()))


def holds_splits(folder: Path) -> bool:
    """Return whether the three files of a fold are in this folder."""
    return not _absent(folder)


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


def missing(entry: Entry, data_dir: DataDir | None, fold: int = 1) -> DataError:
    """Return the error for a dataset that is not there: where it was sought and how to get it."""
    return DataError(
        f"{entry.name} was not found: {sought(entry, data_dir, fold)}", remedy=how_to_get(entry)
    )


def sought(entry: Entry, data_dir: DataDir | None, fold: int = 1) -> str:
    """Return where a dataset was looked for, in words."""
    if data_dir is None:
        return "no data folder is set"
    if not data_dir.path.is_dir():
        return f"the data folder {data_dir.path} (from {data_dir.origin}) does not exist"
    place = data_dir.path / entry.name / f"Fold{fold}"
    return f"no {' '.join(SPLIT_FILES)} in {place} (data folder from {data_dir.origin})"


def how_to_get(entry: Entry) -> str:
    """Return where to download a dataset and how to tell ebrank where it is."""
    return (
        f"Download it from Microsoft Research ({entry.page}), accepting its terms, unpack it to "
        f"DATA/{entry.name}/Fold1 and name DATA by --data-dir (data_dir= in Python), by the "
        f'environment variable EBRANK_DATA, or by data_dir = "DATA" in {config_path()}'
    )


def _absent(folder: Path) -> list[str]:
    return [name for name in SPLIT_FILES if _child(folder, name) is None]


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


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
