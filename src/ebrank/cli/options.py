"""Options that several verbs share, so that their names and help are the same everywhere."""

from __future__ import annotations

from typing import Any

import click

from ebrank.cli.verbs import Options, arg, opt
from ebrank.lab.data.interpretation import AUTO, MAX_FEATURE, NONE

AS_JSON: Any = opt(False, "Print one JSON document for scripts.", "--json")
TOKEN: Any = opt(
    None, "Token, if the server needs one; default: EBRANK_TOKEN.", "TOKEN", envvar="EBRANK_TOKEN"
)
SETTINGS: Any = opt(None, "Settings of the service, in TOML.", "FILE")
FEATURES: Any = opt(None, "Features of items, for evidence.", "FILE")
STORE: Any = arg("STORE|URL")
"""A store that no server uses, or the URL of its server."""
HISTORY: Any = arg("STORE|EXPORT|EVIDENCE")
"""Where verbs find what users did."""
DATA_DIR: Any = opt(
    None,
    "Folder with the datasets, as NAME/Fold1/train.txt; default: EBRANK_DATA.",
    "FOLDER",
    type=click.Path(file_okay=False),
)
ALL_FOLDS = "all"


def _fold(ctx: click.Context, param: click.Parameter, value: str | None) -> int | str | None:
    return value if value in (None, ALL_FOLDS) else _whole(ctx, param, value)


def _whole(ctx: click.Context, param: click.Parameter, value: str) -> int | str | None:
    """Return a whole number, None for `none`, or `auto`; `ebrank.load` checks its range."""
    if value in (AUTO, NONE):
        return None if value == NONE else value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not {param.metavar}: a whole number") from None


def _drop_features(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...] | str:
    """Return the numbers in order, each once."""
    if value in (AUTO, NONE):
        return () if value == NONE else value
    try:
        return tuple(sorted({number for part in value.split(",") for number in _range_of(part)}))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a list of feature numbers such as 1,7,134-136 nor none"
        ) from None


def _range_of(part: str) -> range:
    """Parse a number or a range, such as `7` or `134-136`.

    >>> list(_range_of("134-136"))
    [134, 135, 136]
    """
    first, dash, last = part.partition("-")
    numbers = range(int(first), int(last if dash else first) + 1)
    if not numbers or numbers[0] < 1 or numbers[-1] > MAX_FEATURE:
        raise ValueError(part)
    return numbers


dataset_options: Options = {
    "data_dir": DATA_DIR,
    "fold": opt(
        None,
        "Which fold of a dataset that has several, 1 by default. With all, simulate, "
        "compare and reproduce pool the test queries of all folds.",
        "N|all",
        callback=_fold,
    ),
    "baseline_feature": opt(
        AUTO,
        "Feature with the score of the production ranker (BM25), which ranks before "
        "there is a model; with none, the order is random. Known for datasets with 46 (LETOR "
        "4.0) and 136 (MSLR-WEB) features, otherwise none.",
        "N|none",
        callback=_whole,
        show_default=False,
    ),
    "drop_features": opt(
        AUTO,
        "Features to remove because they are derived from clicks, such as 134-136. "
        "Known for the same datasets, otherwise none.",
        "LIST|none",
        callback=_drop_features,
        show_default=False,
    ),
    "max_label": opt(
        AUTO,
        "Largest possible label. Known for the same datasets, otherwise the largest in the files.",
        "N",
        callback=_whole,
        show_default=False,
    ),
}
"""What verbs that read a dataset ask: where it is, and what its columns mean."""
