"""Reader for LETOR text, the format of MQ2007, MQ2008, MSLR and of SVMlight files with query ids.

One item per line: `label qid:ID feature:value ... # comment`. Labels are whole numbers from 0,
query ids any text without spaces; feature ids ascend from 1 and may be left out where the value is
0, except for one in each row. The rows of a query stand together. Blank lines
and lines with only a comment are skipped.

A bad line is refused with its file and number: nothing is guessed, nothing skipped, nothing cached.

>>> import tempfile
>>> from pathlib import Path
>>> file = Path(tempfile.mkdtemp()) / "tiny.txt"
>>> _ = file.write_text("2 qid:a 1:0.5 3:1 # best\\n0 qid:a 2:4\\n1 qid:b 1:1\\n")
>>> tiny = read(file, cache=False)
>>> tiny
Dataset('tiny', queries=2, rows=3, features=3, max_label=2)
>>> tiny.features
array([[0.5, 0. , 1. ],
       [0. , 4. , 0. ],
       [1. , 0. , 0. ]], dtype=float32)
>>> _ = file.write_text("2 qid:a 1:0.5\\n0 qid:a 2:4 2:5\\n")
>>> try:
...     read(file, cache=False)
... except DataError as error:
...     print(error.line, error.problem)
2 feature id 2 does not come after the one before it
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from ebrank.data import cache as caching
from ebrank.data.catalog import Size, recognize
from ebrank.data.dataset import SPLITS, Dataset
from ebrank.data.flaws import MAX_LABEL
from ebrank.data.parsed import Parsed, Progress, SourceFile
from ebrank.data.sources import unreadable
from ebrank.errors import DataError, ParameterError
from ebrank.parameters import check_whole
from ebrank.paths import expanded

Result = TypeVar("Result")


def read(
    path: str | os.PathLike[str],
    *,
    max_label: int | None = None,
    baseline_feature: int | None = None,
    cache: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """Return the raw dataset of one file, or of a folder with `train`, `vali` and `test`.

    Rows stay in file order; all features from 1 to the largest id are columns. A single file is one
    split, "train". With the cache, arrays are memory-mapped and may exceed memory.

    Args:
        path: a text file, plain or gzip; or a folder with `{train,vali,test}.txt` or `.txt.gz`.
        max_label: largest label of the scale; by default that of the dataset family with this
            number of features, else the largest seen.
        baseline_feature: id of the feature that is the production ranker's score (BM25); by default
            the family's, else the baseline is 0 everywhere.
        cache: keep the parsed arrays and use those kept.
        threads: cores to parse with, by default all; the result is the same.
        progress: called with (bytes read, bytes in all) after each chunk of the text.

    Raises:
        DataError: if the text is not as above, or a label is over the maximum.
    """
    check_whole("max_label", max_label, at_least=0, optional=True)
    if max_label is not None and max_label > MAX_LABEL:
        raise ParameterError(f"max_label must be at most {MAX_LABEL}, not {max_label}")
    check_whole("baseline_feature", baseline_feature, at_least=1, optional=True)
    place = expanded(path)
    files = text_files(place)
    return _parsed(
        files,
        lambda parsed: dataset_of(parsed, place, max_label, baseline_feature),
        cache=cache,
        threads=threads,
        progress=progress,
    )


def parse(
    path: str | os.PathLike[str],
    *,
    cache: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Parsed:
    """Return the arrays and what each file holds; parses, and caches, as `read` does.

    Labels are held against nothing but the largest any scale may have; `dataset_of` does the rest.
    """
    files = text_files(expanded(path))
    return _parsed(files, lambda parsed: parsed, cache=cache, threads=threads, progress=progress)


def totals(files: Sequence[SourceFile]) -> dict[str, int]:
    """Return what the files hold together."""
    return {
        "queries": sum(file.queries for file in files),
        "rows": sum(file.rows for file in files),
        "features": max(file.features for file in files),
        "max_label": max(file.max_label for file in files),
    }


def sizes(files: Sequence[SourceFile]) -> dict[str, Size]:
    """Return the size of each file, by the first part of its name: that of its split."""
    return {
        Path(file.path).name.partition(".")[0]: Size(queries=file.queries, rows=file.rows)
        for file in files
    }


def text_files(path: Path) -> list[Path]:
    """Return the files to read, in the order of `SPLITS` if `path` is a folder."""
    try:
        if not path.is_dir():
            path.stat()
            return [path]
        members = {member.name for member in path.iterdir()}
    except OSError as error:
        raise unreadable(path, error) from None
    found = {
        split: next((n for n in (f"{split}.txt", f"{split}.txt.gz") if n in members), None)
        for split in SPLITS
    }
    missing = [f"{split}.txt" for split, name in found.items() if name is None]
    if missing:
        remedy = "A folder needs train.txt, vali.txt and test.txt, plain or as .txt.gz."
        folds = sorted(name for name in members if re.fullmatch(r"fold\d+", name, re.IGNORECASE))
        if folds:
            remedy = f"Name one of its folds, such as {path / folds[0]}."
        raise DataError(f"no {' and no '.join(missing)} in this folder", path=path, remedy=remedy)
    return [path / name for name in found.values() if name is not None]


def _parsed(
    files: list[Path],
    use: Callable[[Parsed], Result],
    *,
    cache: bool,
    threads: int | None,
    progress: Progress | None,
) -> Result:
    """Return what `use` makes of the parsed files; they are cached only if it accepts them."""
    check_whole("threads", threads, at_least=1, optional=True)
    cache = cache and all(path.is_file() for path in files)  # a pipe cannot be read again
    kept = caching.load(files, threads=threads) if cache else None
    if kept is not None:
        return use(kept)
    from ebrank.data.assembly import parse_files

    if cache:
        try:
            with caching.staging(files) as folder:
                features = folder / caching.FEATURES
                parsed = parse_files(files, features, threads=threads, progress=progress)
                result = use(parsed)
                caching.publish(parsed, folder, threads=threads)
                return result
        except OSError as error:
            warnings.warn(
                f"parsed data is not kept: {error}. "
                "Let EBRANK_DATASET_CACHE name a folder with room that you may write.",
                RuntimeWarning,
                stacklevel=3,
            )
    return use(parse_files(files, None, threads=threads, progress=progress))


def dataset_of(
    parsed: Parsed, path: Path, max_label: int | None, baseline_feature: int | None
) -> Dataset:
    """Return the arrays as a dataset, with the scale and the baseline chosen or recognized."""
    name = _name(path)
    rows, width = parsed.features.shape
    family = recognize(width)
    if max_label is None and family is not None:
        max_label = family.max_label
    if baseline_feature is None and family is not None:
        baseline_feature = family.baseline_feature
    if baseline_feature is not None and baseline_feature > width:
        raise ParameterError(
            f"baseline_feature must be from 1 to {width}, the features of {name}, "
            f"not {baseline_feature}"
        )
    if max_label is None:
        max_label = max(file.max_label for file in parsed.files)
    for file in parsed.files:
        _check_labels(file, max_label)
    queries = [file.queries for file in parsed.files]
    return Dataset(
        name=name,
        features=parsed.features,
        labels=parsed.labels,
        query_pointers=parsed.query_pointers,
        query_ids=parsed.query_ids,
        query_splits=np.repeat(np.arange(len(queries), dtype=np.int8), queries),
        baseline=(
            np.zeros(rows, np.float32)
            if baseline_feature is None
            else parsed.features[:, baseline_feature - 1]  # a view: a copy would read every page
        ),
        feature_ids=np.arange(1, width + 1, dtype=np.int32),
        max_label=max_label,
    )


def _check_labels(file: SourceFile, max_label: int) -> None:
    """Refuse the first line whose label is over the maximum."""
    over = [(line, label) for label, line in enumerate(file.label_lines) if line]
    over = [(line, label) for line, label in over if label > max_label]
    if over:
        line, label = min(over)
        raise DataError(
            f"label {label} is over the maximum, {max_label}",
            path=file.path,
            line=line,
            remedy="Correct the row, or give the scale's largest label as max_label.",
        )


def _name(path: Path) -> str:
    """Return what to call the data in tables.

    >>> _name(Path("MQ2008/Fold1")), _name(Path("MQ2008/Fold1/test.txt.gz")), _name(Path("my.txt"))
    ('MQ2008/Fold1', 'MQ2008/Fold1/test', 'my')
    """
    path = path.absolute()
    own = re.sub(r"(\.txt)?(\.gz)?$", "", path.name) or path.name
    if own in SPLITS:
        return f"{_name(path.parent)}/{own}"
    return f"{path.parent.name}/{own}" if re.fullmatch(r"(?i)fold\d+", own) else own
