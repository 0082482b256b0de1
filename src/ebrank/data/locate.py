"""Find out what a source names, and where its files are.

In the data folder a dataset is `NAME/Fold1/{train,vali,test}.txt`, or `NAME/` with the three files
directly in it; the letter case of folders does not matter.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ebrank.data.catalog import (
    PUBLISHED,
    PublishedDataset,
    Size,
    differences,
    find,
    fold_of,
    named_by,
)
from ebrank.data.dataset import SPLITS
from ebrank.errors import DataError, ParameterError
from ebrank.parameters import check_whole
from ebrank.paths import expanded
from ebrank.settings import DataDir, config_path
from ebrank.settings import data_dir as chosen_data_dir


@dataclass(frozen=True)
class Place:
    """A folder with the files of a fold, and the published dataset of the same name."""

    folder: Path
    named: PublishedDataset | None


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
    """Return where the files of a catalog name or path are.

    Raises:
        DataError: if they are missing; says where ebrank looked, and what is there.
    """
    check_whole("fold", fold, at_least=1, optional=True)
    published = find(source) if isinstance(source, str) else None
    if published is not None:
        root = chosen_data_dir(data_dir)
        folder = locate(published, root, fold or 1) or _incomplete(published, root, fold or 1)
        return Place(folder, published)
    path = expanded(source)
    if not path.exists():
        raise DataError("no such dataset or folder", path=source, remedy=_nearest(path))
    if not path.is_dir():
        remedy = "Name the folder with train.txt, vali.txt and test.txt."
        raise DataError("this is not a folder", path=path, remedy=remedy)
    if holds_splits(path):
        refuse_fold(fold, path)
        return Place(path, named_by(path.absolute()))
    folder = _fold_in(path, fold or 1) or path  # the reader says which files are missing
    return Place(folder, named_by(folder.absolute()))


def refuse_fold(fold: int | None, path: Path) -> None:
    """Raise if a fold is chosen but there are none."""
    if fold is not None:
        raise ParameterError(f"fold selects one of the folders Fold1, Fold2, …; {path} has none")


def holds_splits(folder: Path) -> bool:
    """Return whether the files of a fold are in this folder."""
    from ebrank.data.letor import text_files

    try:
        return folder.is_dir() and bool(text_files(folder))
    except DataError:
        return False


def folds_in(folder: Path) -> dict[int, Path]:
    """Return the folders of folds in a folder, by number, in order; none if it cannot be read."""
    folds: dict[int, Path] = {}
    with contextlib.suppress(OSError):
        for member in sorted(folder.iterdir()):
            name = re.fullmatch(r"fold(\d+)", member.name, re.IGNORECASE)
            if name is not None and member.is_dir():
                folds.setdefault(int(name[1]), member)
    return dict(sorted(folds.items()))


def folds_of(source: str, data_dir: str | os.PathLike[str] | None = None) -> list[int]:
    """Return the numbers of a dataset's folds.

    Raises:
        DataError: if it has no folds.
    """
    published = find(source)
    roots = [expanded(source)]
    if published is not None:
        roots = _folders_of(published, chosen_data_dir(data_dir))
    numbers = next((list(folds) for folds in map(folds_in, roots) if folds), [])
    if not numbers:
        raise DataError(
            f"{source} has no folds to pool",
            remedy="Leave out --fold all, or give a dataset with folders Fold1, Fold2, …",
        )
    return numbers


def locate(published: PublishedDataset, data_dir: DataDir | None, fold: int = 1) -> Path | None:
    """Return the folder with this dataset's files, or None if it is not in the data folder."""
    for folder in _folders_of(published, data_dir):
        inner = folds_in(folder).get(fold)
        if inner is not None and holds_splits(inner):
            return inner
        if inner is None and fold == 1 and holds_splits(folder):
            return folder
    return None


def differences_at(place: Place, sizes: Mapping[str, Size], n_features: int) -> list[str]:
    """Return what differs from the catalog: sizes per file for fold 1, in total for others.

    `sizes` are those of the files, by split.
    """
    if place.named is None:
        return []
    expected = place.named.feature_set.n_features
    if n_features != expected:
        return [f"{place.named.name}: {n_features} features, expected {expected}"]
    if fold_of(place.folder.absolute()) == 1:
        return differences(place.named, sizes.items())
    if len(sizes) < len(SPLITS):
        return []
    whole = Size(
        queries=sum(size.queries for size in sizes.values()),
        rows=sum(size.rows for size in sizes.values()),
    )
    return differences(place.named, [("all", whole)])


def sought(published: PublishedDataset, data_dir: DataDir | None, fold: int = 1) -> str:
    """Return in words where ebrank looked for a dataset."""
    if data_dir is None:
        return "no data folder is set"
    if not data_dir.path.is_dir():
        return f"the data folder {data_dir.path} (from {data_dir.origin}) does not exist"
    place = data_dir.path / published.name / f"Fold{fold}"
    return (
        f"train.txt, vali.txt and test.txt are not in {place} (data folder from {data_dir.origin})"
    )


def how_to_place(published: PublishedDataset) -> str:
    """Return how to tell ebrank where a downloaded dataset is."""
    return (
        f"unpack it to DATA/{published.name}/Fold1 and set DATA with --data-dir (data_dir= in "
        f'Python), with the environment variable EBRANK_DATA, or with data_dir = "DATA" in '
        f"{config_path()}"
    )


def _incomplete(published: PublishedDataset, data_dir: DataDir | None, fold: int) -> Path:
    """Return the folder of a fold that lacks files, so that the reader can say which.

    Raises:
        DataError: if there is no such folder; says which folds there are, or how to get them.
    """
    for folder in _folders_of(published, data_dir):
        inner = _fold_in(folder, fold)
        if inner is not None:
            return inner
        if holds_splits(folder):
            raise DataError(
                f"no fold {fold} here: the files are not in folds",
                path=folder,
                remedy="Leave out --fold (fold= in Python), or add the folders Fold1, Fold2, …",
            )
    raise DataError(
        f"{published.name} was not found: {sought(published, data_dir, fold)}",
        remedy=f"Download it from Microsoft Research ({published.page}); {how_to_place(published)}",
    )


def _fold_in(folder: Path, fold: int) -> Path | None:
    """Return the folder of this fold; None if there are no folds at all.

    Raises:
        DataError: if there are only others.
    """
    folds = folds_in(folder)
    if folds and fold not in folds:
        raise DataError(
            f"no fold {fold} here, only {', '.join(path.name for path in folds.values())}",
            path=folder,
            remedy="Choose one with --fold (fold= in Python).",
        )
    return folds.get(fold)


def _nearest(path: Path) -> str:
    from ebrank.data.presets import PRESETS

    known = [*(published.name for published in PUBLISHED), *PRESETS]
    close = difflib.get_close_matches(path.name, known, n=1)
    guess = f"Did you mean {close[0]}? " if close else ""
    return f"{guess}Known names: {', '.join(known)}; or give the path of a fold folder."


def _folders_of(published: PublishedDataset, data_dir: DataDir | None) -> list[Path]:
    """Return the folders in the data folder with a dataset's name, the exact one first."""
    if data_dir is None or not data_dir.path.is_dir():
        return []
    names = [published.name.casefold(), *published.aliases]
    folders = [
        path
        for path in sorted(data_dir.path.iterdir())
        if path.name.casefold() in names and path.is_dir()
    ]
    return sorted(
        folders, key=lambda path: (path.name != published.name, names.index(path.name.casefold()))
    )
