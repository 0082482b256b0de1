"""The front door: any dataset by name or path, ready for experiments.

A *source* is the name of a synthetic preset ("mq2007-like"), the name of a dataset of the catalog
("MQ2007", looked for in the data folder), or the path of a folder with the files of a fold.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection
from dataclasses import replace

from ebrank.data.catalog import DatasetNote, DatasetWarning, Size, differences, fold_of
from ebrank.data.dataset import SPLITS, Dataset, Origin
from ebrank.data.interpretation import AUTO, Auto, Choices
from ebrank.data.locate import Place, differences_at, place_of, preset_named
from ebrank.data.preparation import prepare
from ebrank.errors import ParameterError


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
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Return a dataset filtered and scaled as experiments need it.

    With "auto", a dataset with a name in the catalog gets what the catalog says. If any other
    dataset has as many features as a known one, they are assumed to be the same, and a
    `DatasetNote` says so.

    Args:
        source: a preset's name, a catalog name or a fold folder.
        data_dir: where to look up catalog names; default: see `ebrank.settings`.
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
        threads: number of cores to use; it does not affect the result.
        progress: called with (bytes read, total bytes) while files are parsed.
    """
    choices = Choices(baseline_feature, drop_features, max_label)
    preset = preset_named(source)
    if preset is not None:
        refuse_for_presets(choices, data_dir=data_dir, fold=fold)
        size = 1.0 if scale is None else scale
        products = 0.0 if interactions is None else interactions
        return _generated(preset, size, products, seed, choices, threads)
    if scale is not None:
        raise ParameterError(f"scale works only with synthetic presets, not with {source}")
    if interactions is not None:
        raise ParameterError(f"interactions works only with synthetic presets, not with {source}")
    from ebrank.data import letor

    place = place_of(source, data_dir=data_dir, fold=fold)
    raw, interpretation = letor.read_as(
        place.folder, place.named, choices, cache=cache, threads=threads, progress=progress
    )
    raw = _with_origin(raw, place, choices)
    for note in interpretation.experiment_notes:
        warnings.warn(note, DatasetNote, stacklevel=2)
    for difference in raw.origin.differences if raw.origin is not None else ():
        warnings.warn(difference, DatasetWarning, stacklevel=2)
    return prepare(raw, threads=threads)


def refuse_for_presets(choices: Choices, **options: object) -> None:
    """Raise if an option is given that has no meaning for a synthetic preset."""
    given = [option for option, _ in choices.given if option != "drop_features"]
    given += [option for option, value in options.items() if value is not None]
    if given:
        raise ParameterError(f"{given[0]} works only with files, not with a synthetic preset")


def _generated(
    preset: str,
    scale: float,
    interactions: float,
    seed: int,
    choices: Choices,
    threads: int | None,
) -> Dataset:
    from ebrank.data.synthetic import generate

    raw = generate(preset, scale=scale, interactions=interactions, seed=seed, threads=threads)
    options = choices.given
    if interactions:
        options = (*options, ("interactions", f"{interactions:g}"))
    origin = Origin(preset, preset=True, scale=scale, options=options)
    known = replace(raw, origin=origin, check_values=False)
    return prepare(known, drop_features=choices.drop_features, threads=threads)


def _with_origin(raw: Dataset, place: Place, choices: Choices) -> Dataset:
    """Return a dataset with its origin, if it has the name of a published one."""
    if place.named is None:
        return raw
    sizes = {split: _size_of(raw, split) for split in SPLITS}
    found = tuple(differences_at(place, sizes, raw.n_features))
    fold = fold_of(place.folder.absolute())
    if fold is None and not differences(place.named, sizes.items()):
        fold = 1  # known by the sizes of its files
    name = place.named.name
    origin = Origin(name, fold=fold, differences=found, options=choices.given)
    return replace(raw, name=name, origin=origin, check_values=False)


def _size_of(dataset: Dataset, split: str) -> Size:
    """Return the queries and rows of one split."""
    queries = dataset.queries_in(split)
    return Size(queries=len(queries), rows=int(dataset.candidates[queries].sum()))
