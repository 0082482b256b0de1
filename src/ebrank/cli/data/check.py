"""`ebrank data check`: parse everything, count it, compare it with what is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import dataset_options, json_option
from ebrank.errors import DataError, EBRankError, ParameterError
from ebrank.paths import expanded

if TYPE_CHECKING:
    from ebrank.data.catalog import Size
    from ebrank.data.dataset import Dataset
    from ebrank.data.locate import Place

Progress = Callable[[int, int], None]


@click.command(
    "check",
    epilog=examples(
        "ebrank data check ~/datasets/MQ2008/Fold1",
        "ebrank data check train.txt",
        "ebrank data check MSLR-WEB10K --data-dir ~/datasets --json",
        "ebrank data check my-folder --baseline-feature 3 --drop-features 9-11",
    ),
)
@click.argument("path")
@dataset_options
@json_option
def command(path: str, as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Parse a dataset and count what is in it.

    PATH is a file, a folder with train.txt, vali.txt and test.txt, or the name of a published
    dataset. Exit code 0 means good; 2 means bad files or options that do not fit them, and the
    first bad line or the reason is told.
    """
    report = empty_report(path)
    try:
        with console.progress("reading") as progress:
            fill(report, progress, **options)
    except (EBRankError, OSError) as problem:
        if not as_json:
            raise
        report["error"] = _error(problem)
    report["ok"] = report["error"] is None
    if as_json:
        console.print_json(report)
    else:
        print_report(report)
    if not report["ok"]:
        raise click.exceptions.Exit(2)


def empty_report(path: str) -> dict[str, Any]:
    """Return the report of a check that has found nothing yet."""
    return {
        "path": path,
        "ok": False,
        "files": [],
        "all": None,
        "family": None,
        "prepared": None,
        "warnings": [],
        "error": None,
    }


def fill(
    report: dict[str, Any],
    progress: Progress | None,
    *,
    data_dir: str | None,
    fold: int | None,
    baseline_feature: int | None,
    drop_features: tuple[int, ...] | None,
    max_label: int | None,
) -> None:
    """Put into the report what is found at its path; raises where the input is bad."""
    from ebrank.data import letor
    from ebrank.data.preparation import to_drop

    place = place_to_check(report["path"], data_dir, fold)
    parsed = letor.parse(place.folder, progress=progress)
    report["path"] = str(place.folder)
    report["files"] = [{"path": file.path, **letor.totals([file])} for file in parsed.files]
    report["all"] = letor.totals(parsed.files)
    recognize_in(report, place, letor.sizes(parsed.files))
    raw = letor.dataset_of(parsed, place.folder, max_label, baseline_feature)
    to_drop(raw, drop_features)  # also where nothing is prepared, it must fit
    if report["family"] is None and baseline_feature is None:
        report["warnings"].append(
            f"{raw.n_features} features are those of no known dataset: "
            "to load it, say which is the production ranker's score by --baseline-feature"
        )
    elif place.folder.is_dir():
        report["prepared"] = prepared(raw, drop_features)


def place_to_check(path: str, data_dir: str | None, fold: int | None) -> Place:
    """Return the file or the fold folder that a path or a name stands for."""
    from ebrank.data.catalog import entry_of, find
    from ebrank.data.locate import Place, place_of, preset_named, refuse_fold

    if preset_named(path) is not None:
        raise ParameterError(f"{path} is a synthetic preset: there are no files to check")
    if find(path) is None and (file := expanded(path)).is_file():
        refuse_fold(fold, file)
        return Place(file, entry_of(file.absolute()))
    return place_of(path, data_dir=data_dir, fold=fold)


def recognize_in(report: dict[str, Any], place: Place, sizes: dict[str, Size]) -> None:
    """Put into the report the family, and what differs from the dataset this should be."""
    from ebrank.data.catalog import recognize
    from ebrank.data.locate import differences_at

    features = report["all"]["features"]
    family = recognize(features)
    report["family"] = None if family is None else family.name
    report["warnings"] += differences_at(place, sizes, features)


def prepared(raw: Dataset, drop_features: tuple[int, ...] | None) -> dict[str, Any]:
    """Return what preparation leaves."""
    from ebrank.data.dataset import SPLITS
    from ebrank.data.preparation import prepare

    dataset = prepare(raw, drop_features=drop_features)
    return {
        "queries": dataset.n_queries,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
        "max_label": dataset.max_label,
        "splits": {split: len(dataset.queries_in(split)) for split in SPLITS},
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the report for people: results to stdout, warnings to stderr."""
    columns = ("queries", "rows", "features", "max_label")
    click.echo(report["path"])
    console.print_table(
        ("file", *columns),
        [
            (Path(file["path"]).name, *(file[column] for column in columns))
            for file in report["files"]
        ],
        total=("all", *(report["all"][column] for column in columns)),
    )
    if report["family"]:
        click.echo(f"Recognized by the number of features: {report['family']}")
    if report["prepared"]:
        left = report["prepared"]
        splits = "/".join(str(count) for count in left["splits"].values())
        click.echo(
            f"After preparation: {left['queries']:,} queries ({splits}), {left['rows']:,} rows, "
            f"{left['features']} features"
        )
    for warning in report["warnings"]:
        console.warn(warning)


def _error(problem: EBRankError | OSError) -> dict[str, Any]:
    where = problem if isinstance(problem, DataError) else DataError("")
    return {"message": str(problem), "path": where.path, "line": where.line}
