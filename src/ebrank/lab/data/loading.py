"""The front door: any dataset by name or path, ready for experiments.

A *source* is the name of a synthetic preset ("mq2007-like"), the name of a published dataset
("MQ2007"), or the path of a folder with the files of a fold. Published datasets are looked for in
the data folder, as `NAME/Fold1/{train,vali,test}.txt`, or `NAME/` with the three files directly in
it; the letter case of folders does not matter.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ebrank.environment.config import DataDir
from ebrank.environment.config import data_dir as chosen_data_dir
from ebrank.environment.paths import expanded
from ebrank.errors import DataError, ParameterError
from ebrank.lab.data import letor
from ebrank.lab.data.dataset import SPLITS, Dataset, Origin
from ebrank.lab.data.interpretation import AUTO, Auto, ColumnChoices
from ebrank.lab.data.preparation import prepare
from ebrank.lab.data.presets import PRESETS
from ebrank.lab.data.published import (
    PUBLISHED,
    DatasetNote,
    DatasetWarning,
    PublishedDataset,
    Size,
    differences,
    find,
    fold_number,
    fold_of,
    named_by,
)
from ebrank.lab.data.shop import ShopLike
from ebrank.parameters import check_whole


def load(
    source: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    scale: float | None = None,
    interactions: float | None = None,
    seed: int = 0,
    fold: int | None = None,
    baseline_feature: int | Auto | None = AUTO,
    drop_features: Collection[int] | Auto | None = AUTO,
    max_label: int | Auto = AUTO,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Return a dataset filtered and scaled as experiments need it.

    With "auto", a dataset with a name in the catalog gets what the catalog says. If any other
    dataset has as many features as a known one, they are assumed to be the same, and a
    `DatasetNote` says so.

    Args:
        source: a preset's name, with parameters if it has any (`shop-like:tau=0.4`), the name of a
            published dataset, or a fold folder.
        data_dir: where to look up catalog names; default: `EBRANK_DATA`.
        scale: share of a preset's queries to generate, 1 by default; presets only.
        interactions: share of a preset's linear signal to move into products of features, 0 by
            default; presets only.
        seed: seed of a preset's generator.
        fold: which fold to load if there are several, 1 by default.
        baseline_feature: number of the feature with the production ranker's score (BM25), which
            ranks the initial log. None ranks it at random, and so does "auto" if none is known.
        drop_features: numbers of the features to remove because they are derived from clicks;
            () for none. "auto" removes none if none are known.
        max_label: the largest label on the scale; "auto": as known, or the largest in the files.
        cache: whether to cache the parsed files.
        progress: called with (bytes read, total bytes) while files are parsed.
    """
    choices = ColumnChoices(baseline_feature, drop_features, max_label)
    preset = preset_named(source)
    if preset is not None:
        from ebrank.lab.data.synthetic import generate  # compiled: imported when needed

        for option, value, usual in (
            ("baseline_feature", baseline_feature, AUTO),
            ("max_label", max_label, AUTO),
            ("data_dir", data_dir, None),
            ("fold", fold, None),
        ):
            if value != usual:
                raise ParameterError(f"{option} works only with files, not with a synthetic preset")
        scale = 1.0 if scale is None else scale
        raw = generate(preset, scale=scale, interactions=interactions or 0.0, seed=seed)
        raw = replace(raw, origin=Origin(preset, preset=True, scale=scale), check_values=False)
        return prepare(raw, drop_features=choices.drop_features)
    for option, share in (("scale", scale), ("interactions", interactions)):
        if share is not None:
            raise ParameterError(f"{option} works only with synthetic presets, not with {source}")
    place = place_of(source, data_dir=data_dir, fold=fold)
    parsed = letor.parse(place.folder, cache=cache, progress=progress)
    interpretation = letor.interpretation_of(parsed, place.folder, place.named, choices)
    raw = letor.dataset_of(parsed, interpretation)
    raw = _with_origin(raw, place, letor.sizes(parsed.files))
    for note in interpretation.experiment_notes:
        warnings.warn(note, DatasetNote, stacklevel=2)
    for difference in raw.origin.differences if raw.origin is not None else ():
        warnings.warn(difference, DatasetWarning, stacklevel=2)
    return prepare(raw)


def _with_origin(raw: Dataset, place: Place, sizes: Mapping[str, Size]) -> Dataset:
    """Return a dataset with its origin, if it has the name of a published one."""
    if place.named is None:
        return raw
    fold = fold_of(place.folder.absolute())
    if fold is None and not differences(place.named, sizes):
        fold = 1  # known by the sizes of its files
    differing = tuple(differences_at(place, sizes, raw.n_features))
    origin = Origin(place.named.name, fold=fold, differences=differing)
    return replace(raw, name=origin.name, origin=origin, check_values=False)


# --- where the files are -------------------------------------------------------------------------


class Place(NamedTuple):
    """A folder with the files of a fold, and the published dataset of the same name."""

    folder: Path
    named: PublishedDataset | None


def preset_named(source: str | os.PathLike[str]) -> str | None:
    """Return the preset that a source names, or None; the text of its parameters, if any, stays."""
    name = source.casefold() if isinstance(source, str) else ""
    return name if name in PRESETS or name.partition(":")[0] == ShopLike.name else None


def place_of(
    source: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    fold: int | None = None,
    files: bool = False,
) -> Place:
    """Return where the files of a catalog name or path are, which may be a single file if allowed.

    Raises:
        DataError: if they are missing; says where ebrank looked, and what is there.
    """
    check_whole("fold", fold, at_least=1, optional=True)
    published = find(source) if isinstance(source, str) else None
    if published is not None:
        root = chosen_data_dir(data_dir)
        folders = _folders_of(published, root)
        if not folders:
            raise _not_found(published, root, fold or 1)
        return Place(_fold_in(folders[0], fold or 1), published)
    path = expanded(source)
    if not path.exists():
        raise DataError("no such dataset or folder", path=source, remedy=_nearest(path))
    if not path.is_dir() and (not files or fold is not None):
        remedy = "Name the folder with train.txt, vali.txt and test.txt."
        raise DataError("this is not a folder", path=path, remedy=remedy)
    folder = _fold_in(path, fold or 1) if path.is_dir() else path
    return Place(folder, named_by(folder.absolute()))


def holds_splits(folder: Path) -> bool:
    """Return whether the files of a fold are in this folder."""
    try:
        return folder.is_dir() and bool(letor.text_files(folder))
    except DataError:
        return False


def folds_in(folder: Path) -> dict[int, Path]:
    """Return the folders of folds in a folder, by number, in order; none if it cannot be read."""
    folds: dict[int, Path] = {}
    with contextlib.suppress(OSError):
        for member in sorted(folder.iterdir()):
            number = fold_number(member.name)
            if number is not None and member.is_dir():
                folds.setdefault(number, member)
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


def locate(published: PublishedDataset, data_dir: DataDir | None) -> Path | None:
    """Return the folder with this dataset's first fold, or None if it is not in the data folder."""
    for folder in _folders_of(published, data_dir)[:1]:
        with contextlib.suppress(DataError):
            inner = _fold_in(folder, 1)
            return inner if holds_splits(inner) else None
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
        return differences(place.named, sizes)
    if len(sizes) < len(SPLITS):
        return []
    return differences(place.named, {"all": Size.total(sizes.values())})


def _not_found(published: PublishedDataset, data_dir: DataDir | None, fold: int) -> DataError:
    """Return the error for a dataset that is not there; it says where, and how to get it."""
    if data_dir is None:
        sought = "no data folder is set"
    elif not data_dir.path.is_dir():
        sought = f"the data folder {data_dir.path} (from {data_dir.origin}) does not exist"
    else:
        place = data_dir.path / published.name / f"Fold{fold}"
        sought = f"train.txt, vali.txt and test.txt are not in {place}"
        sought += f" (data folder from {data_dir.origin})"
    return DataError(
        f"{published.name} was not found: {sought}",
        remedy=f"Download it from Microsoft Research ({published.page}); unpack it to "
        f"DATA/{published.name}/Fold1 and set DATA with --data-dir (data_dir= in Python), or with "
        "the environment variable EBRANK_DATA",
    )


def _fold_in(folder: Path, fold: int) -> Path:
    """Return the folder of this fold; files that are not in folds are those of fold 1.

    Where there are neither folds nor files, it is the folder: the reader says what is missing.

    Raises:
        DataError: if there are only other folds.
    """
    folds = {1: folder} if holds_splits(folder) else folds_in(folder)
    if folds and fold not in folds:
        names = [path.name for path in folds.values() if path != folder]
        there = ", ".join(names) or "files that are not in folds"
        raise DataError(
            f"no fold {fold} here, only {there}",
            path=folder,
            remedy="Choose one with --fold (fold= in Python), or leave it out.",
        )
    return folds.get(fold, folder)


def _nearest(path: Path) -> str:
    names = [*(published.name for published in PUBLISHED), *PRESETS, ShopLike.name]
    close = difflib.get_close_matches(path.name, names, n=1)
    guess = f"Did you mean {close[0]}? " if close else ""
    return f"{guess}Known names: {', '.join(names)}; or give the path of a fold folder."


def _folders_of(published: PublishedDataset, data_dir: DataDir | None) -> list[Path]:
    """Return the folders of a dataset in the data folder: first any with data, then by name."""
    if data_dir is None or not data_dir.path.is_dir():
        return []
    folders = data_dir.path.iterdir()
    named = [path for path in folders if find(path.name) is published and path.is_dir()]

    def order(path: Path) -> tuple[bool, bool, Path]:
        return not (holds_splits(path) or folds_in(path)), path.name != published.name, path

    return sorted(named, key=order)
