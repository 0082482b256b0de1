"""The front door: any dataset by name or path, ready for experiments.

A *source* is the name of a synthetic preset ("mq2007-like"), the name of a dataset of the catalogue
("MQ2007", found in the data folder), or the path of a folder with the files of a fold.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection
from dataclasses import replace

from ebrank.data.catalog import DatasetWarning, Size, differences, fold_of, recognize
from ebrank.data.dataset import SPLITS, Dataset
from ebrank.data.locate import Place, differences_at, place_of, preset_named
from ebrank.data.origin import Origin, told
from ebrank.data.preparation import prepare
from ebrank.errors import DataError, ParameterError


def load(
    source: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    scale: float | None = None,
    seed: int = 0,
    fold: int | None = None,
    baseline_feature: int | None = None,
    drop_features: Collection[int] | None = None,
    max_label: int | None = None,
    cache: bool = True,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Return a dataset filtered and scaled as experiments need it.

    Args:
        source: a preset's name, a catalogue name or a fold folder.
        data_dir: where catalogue names are looked up; by default as `ebrank.settings` says.
        scale: share of a preset's queries to generate, 1 by default; presets only.
        seed: of a preset's generator.
        fold: which fold of a dataset that has several, 1 by default.
        baseline_feature: number of the production ranker's (BM25) feature; needed only where the
            number of features is not that of a known dataset.
        drop_features: numbers of the behavior features to remove; as above.
        max_label: the largest label of the scale, by default the family's or else the largest seen.
        cache: keep the parsed files for the next time.
        threads: cores to use; the result does not depend on it.
        progress: called with (bytes read, bytes in all) while files are parsed.
    """
    preset = preset_named(source)
    if preset is not None:
        _refuse_for_presets(
            data_dir=data_dir, fold=fold, baseline_feature=baseline_feature, max_label=max_label
        )
        share = 1.0 if scale is None else scale
        return _generated(preset, share, seed, drop_features, threads)
    if scale is not None:
        raise ParameterError(f"scale is for synthetic presets; {source} is read whole")
    raw = read_place(
        place_of(source, data_dir=data_dir, fold=fold),
        baseline_feature=baseline_feature,
        max_label=max_label,
        cache=cache,
        threads=threads,
        progress=progress,
    )
    return _with_options(
        prepare(raw, drop_features=drop_features, threads=threads),
        baseline_feature=baseline_feature,
        drop_features=drop_features,
        max_label=max_label,
    )


def _with_options(dataset: Dataset, **options: object) -> Dataset:
    """Return a dataset whose origin, if it is known, says what the loader was told."""
    origin = dataset.origin
    if origin is None:
        return dataset
    return replace(dataset, origin=replace(origin, options=told(**options)))


def _generated(
    preset: str, scale: float, seed: int, drop_features: Collection[int] | None, threads: int | None
) -> Dataset:
    from ebrank.data.synthetic import generate

    raw = generate(preset, scale=scale, seed=seed, threads=threads)
    known = replace(raw, origin=Origin(preset, preset=True, scale=scale))
    ready = prepare(known, drop_features=drop_features, threads=threads)
    return _with_options(ready, drop_features=drop_features)


def _refuse_for_presets(**options: object) -> None:
    for option, given in options.items():
        if given is not None:
            raise ParameterError(f"{option} is for files; a synthetic preset has none")


def read_place(
    place: Place,
    *,
    baseline_feature: int | None = None,
    max_label: int | None = None,
    cache: bool = True,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Return the raw dataset of a fold folder, warning where it is not as the catalogue expects."""
    from ebrank.data import letor

    raw = letor.read(
        place.folder,
        max_label=max_label,
        baseline_feature=baseline_feature,
        cache=cache,
        threads=threads,
        progress=progress,
    )
    if baseline_feature is None and recognize(raw.n_features) is None:
        raise DataError(
            f"{raw.n_features} features are those of no known dataset",
            path=place.folder,
            remedy="Say by --baseline-feature (baseline_feature= in Python) which one is the score "
            "of the production ranker, such as BM25, and by --drop-features (drop_features=) which "
            "are made from clicks, if any.",
        )
    if place.entry is None:
        return raw
    sizes = {split: split_size(raw, split) for split in SPLITS}
    found = tuple(differences_at(place, sizes, raw.n_features))
    for difference in found:
        warnings.warn(difference, DatasetWarning, stacklevel=3)
    fold = fold_of(place.folder.absolute())
    if fold is None and not differences(place.entry, sizes.items()):
        fold = 1  # told by the sizes of its files
    name = place.entry.name
    return replace(raw, name=name, origin=Origin(name, fold=fold, differences=found))


def split_size(dataset: Dataset, split: str) -> Size:
    """Return the queries and rows of one split."""
    queries = dataset.queries_in(split)
    return Size(queries=len(queries), rows=int(dataset.candidates[queries].sum()))
