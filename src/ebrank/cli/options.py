"""Options that several verbs share, so that they are spelled and explained alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ebrank.data.flaws import MAX_FEATURE, MAX_LABEL

F = TypeVar("F", bound=Callable[..., Any])


def data_dir_option(function: F) -> F:
    """Add `--data-dir`: where published datasets are looked for by name."""
    return click.option(
        "--data-dir",
        metavar="FOLDER",
        type=click.Path(file_okay=False),
        help="Folder with the datasets, as NAME/Fold1/train.txt; else EBRANK_DATA, else the "
        "data_dir of the configuration file.",
    )(function)


def dataset_options(function: F) -> F:
    """Add what `ebrank.load` must be told of files that are not of a known family."""
    options = (
        data_dir_option,
        click.option(
            "--fold",
            type=click.IntRange(min=1),
            metavar="NUMBER",
            help="Which fold of a dataset that has several, 1 by default.",
        ),
        click.option(
            "--baseline-feature",
            type=click.IntRange(min=1),
            metavar="NUMBER",
            help="Feature that is the production ranker's score (BM25); known where the number of "
            "features is 46 (LETOR 4.0) or 136 (MSLR-WEB).",
        ),
        click.option(
            "--drop-features",
            callback=_feature_numbers,
            metavar="NUMBERS",
            help="Features made from clicks, to be removed, such as 134-136; known as above.",
        ),
        click.option(
            "--max-label",
            type=click.IntRange(1, MAX_LABEL),
            metavar="LABEL",
            help="Largest label of the scale; known as above, else the largest there is.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def json_option(function: F) -> F:
    """Add `--json`: one JSON document on stdout."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document for scripts."
    )(function)


def _feature_numbers(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Return the numbers in order, each once."""
    if value is None:
        return None
    try:
        return tuple(sorted({number for part in value.split(",") for number in _range_of(part)}))
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a list of feature numbers such as 1,7,134-136"
        ) from None


def _range_of(part: str) -> range:
    """Return the numbers that `7` or `134-136` stands for.

    >>> list(_range_of("134-136"))
    [134, 135, 136]
    """
    first, dash, last = part.partition("-")
    numbers = range(int(first), int(last if dash else first) + 1)
    if not numbers or numbers[0] < 1 or numbers[-1] > MAX_FEATURE:
        raise ValueError(part)
    return numbers
