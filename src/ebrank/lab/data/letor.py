"""Reader for LETOR text, the format of MQ2007, MQ2008, MSLR and of SVMlight files with query ids.

One item per line: `label qid:ID feature:value ... # comment`. Labels are whole numbers from 0, also
written as 1.0; query ids are any text without spaces. Feature ids ascend from 1; those whose value
is 0 may be left out, but each row needs at least one. The rows of a query must be together. Blank
lines and lines with only a comment are skipped.

A bad line raises an error with its file and number: nothing is guessed, skipped or cached.

>>> import tempfile
>>> from pathlib import Path
>>> file = Path(tempfile.mkdtemp()) / "tiny.txt"
>>> _ = file.write_text("2 qid:a 1:0.5 3:1 # best\\n0 qid:a 2:4\\n1 qid:b 1:1\\n")
>>> tiny = read(file, baseline_feature=1, cache=False)
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
2 feature 2 does not come after the one before it
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from ebrank.environment.paths import expanded
from ebrank.errors import DataError
from ebrank.lab.data import cache as caching
from ebrank.lab.data.cache import Parsed, ParsedFile
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.interpretation import AUTO, Auto, ColumnChoices, Interpretation, interpret
from ebrank.lab.data.published import DatasetNote, PublishedDataset, Size, fold_number, named_by
from ebrank.typing import Ints, Labels, Texts

if TYPE_CHECKING:
    from ebrank.lab.data.assembly import Progress

VALIDATION_SHARE = 0.2
"""Share of the training queries that become validation queries if there is no vali.txt."""


def read(
    path: str | os.PathLike[str],
    *,
    baseline_feature: int | Auto | None = AUTO,
    drop_features: Collection[int] | Auto | None = AUTO,
    max_label: int | Auto = AUTO,
    cache: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """Return the raw dataset of one file, or of a folder with `train`, `vali` and `test`.

    Rows stay in file order; all features from 1 to the largest id are columns. A single file is one
    split, "train". With the cache, arrays are memory-mapped. A `DatasetNote` says what was assumed
    about the columns, or where validation queries come from.

    Args:
        path: a text file, plain or gzip; or a folder with `{train,vali,test}.txt` or `.txt.gz`.
        baseline_feature: number of the feature with the production ranker's score (BM25); None if
            there is none. "auto" takes that of a known feature set, else none.
        drop_features: numbers of the features derived from clicks, which `prepare` will remove.
            "auto" takes those of a known feature set, else none.
        max_label: largest label of the scale. "auto" takes that of a known feature set, else the
            largest in the files.
        cache: cache the parsed arrays, and use those in the cache.
        progress: called with (bytes read, total bytes) after each chunk of the text.

    Raises:
        DataError: if the text is malformed, or a label is over the maximum.
    """
    place, choices = expanded(path), ColumnChoices(baseline_feature, drop_features, max_label)
    parsed = parse(place, cache=cache, progress=progress)
    interpretation = interpretation_of(parsed, place, named_by(place.absolute()), choices)
    for note in interpretation.notes:
        warnings.warn(note, DatasetNote, stacklevel=2)
    return dataset_of(parsed, interpretation)


def parse(
    path: str | os.PathLike[str],
    *,
    cache: bool = True,
    progress: Progress | None = None,
) -> Parsed:
    """Return the arrays and what each file holds; parse and cache as `read` does.

    Labels may be on any scale; `dataset_of` does the rest.
    """
    files = text_files(expanded(path))
    cache = cache and all(file.is_file() for file in files)  # a pipe cannot be read again
    cached = caching.load(files) if cache else None
    if cached is not None:
        return cached
    from ebrank.lab.data.assembly import parse_files  # compiled: imported when needed

    parsed = parse_files(files, progress=progress)
    if not cache:
        return parsed
    try:
        caching.save(parsed)
    except OSError as error:
        warnings.warn(
            f"parsed data is not cached: {error}. "
            "Set EBRANK_DATASET_CACHE to a writable folder with enough space.",
            RuntimeWarning,
            stacklevel=3,
        )
        return parsed
    return caching.load(files) or parsed  # mapped, it takes no memory


def interpretation_of(
    parsed: Parsed, path: Path, named: PublishedDataset | None, choices: ColumnChoices
) -> Interpretation:
    """Return what the columns and labels of parsed files mean, with notes on what was assumed."""
    interpretation = interpret(
        _name(path),
        n_features=parsed.features.shape[1],
        largest_label=max(file.max_label for file in parsed.files),
        named=named,
        choices=choices,
    )
    if not _lacks_validation(parsed.files):
        return interpretation
    training = parsed.files[0].queries
    carved = len(validation_queries(parsed.query_ids[:training]))
    note = (
        f"{interpretation.name} has no vali.txt. {carved:,} of its {training:,} training queries, "
        "chosen by a hash of their ids, are its validation queries."
    )
    return replace(interpretation, notes=(*interpretation.notes, note))


def dataset_of(parsed: Parsed, interpretation: Interpretation) -> Dataset:
    """Return parsed files as a dataset."""
    for file in parsed.files:
        _check_labels(file, interpretation)
    rows, width = parsed.features.shape
    baseline = interpretation.baseline_feature
    return Dataset(
        name=interpretation.name,
        features=parsed.features,
        labels=parsed.labels,
        query_pointers=parsed.query_pointers,
        query_ids=parsed.query_ids,
        query_splits=_query_splits(parsed),
        baseline=(
            np.zeros(rows, np.float32)
            if baseline is None
            else parsed.features[:, baseline - 1]  # a view: a copy would read every page
        ),
        feature_ids=np.arange(1, width + 1, dtype=np.int32),
        max_label=interpretation.max_label,
        behavior_features=interpretation.drop_features,
        check_values=False,  # the parser refuses numbers that are not finite
    )


def validation_queries(query_ids: Texts) -> Ints:
    """Return which of the training queries become validation queries: a fifth, by hash of the id.

    The choice does not depend on the order of the queries or on their items.

    >>> validation_queries(np.array(["a", "b", "c", "d", "e"]))
    array([3])
    """
    hashes = [xxhash.xxh3_64_intdigest(query.encode()) for query in query_ids.tolist()]
    count = min(max(1, round(VALIDATION_SHARE * len(hashes))), len(hashes) - 1)
    return np.sort(np.argsort(np.array(hashes, np.uint64), kind="stable")[:count])


def totals(files: Sequence[ParsedFile]) -> dict[str, int]:
    """Return what the files hold together."""
    return {
        "queries": sum(file.queries for file in files),
        "rows": sum(file.rows for file in files),
        "features": max(file.features for file in files),
        "max_label": max(file.max_label for file in files),
    }


def sizes(files: Sequence[ParsedFile]) -> dict[str, Size]:
    """Return the size of each file, by its split."""
    return {_split_of(file): Size(file.queries, file.rows) for file in files}


def text_files(path: Path) -> list[Path]:
    """Return the files to read, in the order of `SPLITS` if `path` is a folder.

    Validation may be missing, unless the folder has the name of a published dataset.
    """
    try:
        if not path.is_dir():
            path.stat()
            return [path]
        members = {member.name for member in path.iterdir()}
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from None
    files = [
        next((path / name for name in (f"{split}.txt", f"{split}.txt.gz") if name in members), None)
        for split in SPLITS
    ]
    named = named_by(path.absolute())
    missing = [
        f"{split}.txt"
        for split, file in zip(SPLITS, files, strict=True)
        if file is None and (split != "vali" or named is not None)
    ]
    if missing:
        remedy = "A folder needs train.txt and test.txt, plain or as .txt.gz; vali.txt is optional."
        folds = sorted(name for name in members if fold_number(name) is not None)
        if folds:
            remedy = f"Name one of its folds, such as {path / folds[0]}."
        elif named is not None:
            remedy = f"Each fold of {named.name} has train.txt, vali.txt and test.txt."
        raise DataError(f"no {' and no '.join(missing)} in this folder", path=path, remedy=remedy)
    return [file for file in files if file is not None]


def _split_of(file: ParsedFile) -> str:
    """Return a file's name up to the first dot: the name of its split, in a folder."""
    return Path(file.path).name.partition(".")[0]


def _lacks_validation(files: Sequence[ParsedFile]) -> bool:
    """Return whether these are the files of a folder without vali.txt."""
    return len(files) == len(SPLITS) - 1


def _query_splits(parsed: Parsed) -> Labels:
    """Return the split of each query: its file's, with validation taken from training."""
    alone = len(parsed.files) == 1
    splits = [0 if alone else SPLITS.index(_split_of(file)) for file in parsed.files]
    queries = [file.queries for file in parsed.files]
    query_splits = np.repeat(np.array(splits, np.int8), queries)
    if _lacks_validation(parsed.files):
        carved = validation_queries(parsed.query_ids[: queries[0]])
        query_splits[carved] = SPLITS.index("vali")
    return query_splits


def _check_labels(file: ParsedFile, interpretation: Interpretation) -> None:
    """Raise at the first line whose label is over the maximum."""
    maximum = interpretation.max_label
    over = [
        (line, label) for label, line in enumerate(file.label_lines) if line and label > maximum
    ]
    if over:
        line, label = min(over)
        source = ""
        if "max_label" in interpretation.assumed:
            source = f" (that of {interpretation.feature_set}, with the same number of features)"
        raise DataError(
            f"label {label} is over the maximum, {maximum}{source}",
            path=file.path,
            line=line,
            remedy="Correct the row, or set --max-label (max_label= in Python) to the largest "
            "label of the scale.",
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
    return own if fold_number(own) is None else f"{path.parent.name}/{own}"
