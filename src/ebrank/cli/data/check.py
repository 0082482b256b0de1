"""`ebrank data check`: parse everything, count it, compare it with what is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import dataset_options, json_option
from ebrank.environment.paths import expanded
from ebrank.errors import DataError, EBRankError, ParameterError

if TYPE_CHECKING:
    from ebrank.data.dataset import Dataset
    from ebrank.data.interpretation import Interpretation
    from ebrank.data.loading import Place

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
    """Parse a dataset and count its queries, rows, features and labels.

    PATH is a file, a folder with train.txt, vali.txt and test.txt, or the name of a published
    dataset. Exit code 0 means that the dataset is usable. 2 means that a file is bad, that the
    options do not fit the files, or that nothing is left to learn from or to measure on; the error
    says why, and names the first bad line.
    """
    keys = ("files", "all", "interpretation", "prepared", "notes", "warnings", "error")
    report: dict[str, Any] = {"path": path, "ok": False, **dict.fromkeys(keys)}
    report |= {"files": [], "notes": [], "warnings": []}
    try:
        with console.progress("reading") as progress:
            interpretation = fill(report, progress, **options)
    except (EBRankError, OSError) as problem:
        if not as_json:
            raise
        where = problem if isinstance(problem, DataError) else DataError("")
        report["error"] = {"message": str(problem), "path": where.path, "line": where.line}
    report["ok"] = report["error"] is None
    if as_json:
        console.print_json(report)
    else:
        print_report(report, interpretation)
    if not report["ok"]:
        raise click.exceptions.Exit(2)


def fill(
    report: dict[str, Any],
    progress: Progress | None,
    *,
    data_dir: str | None,
    fold: int | None,
    **choices: Any,  # noqa: ANN401
) -> Interpretation:
    """Fill the report with what its path holds; raise if the input is bad."""
    from ebrank.data import letor
    from ebrank.data.interpretation import ColumnChoices
    from ebrank.data.loading import differences_at
    from ebrank.data.preparation import prepare, to_drop

    place = place_to_check(report["path"], data_dir, fold)
    parsed = letor.parse(place.folder, progress=progress)
    report["path"] = str(place.folder)
    report["files"] = [{"path": file.path, **letor.totals([file])} for file in parsed.files]
    report["all"] = letor.totals(parsed.files)
    features = report["all"]["features"]
    report["warnings"] += differences_at(place, letor.sizes(parsed.files), features)
    interpretation = letor.interpretation_of(
        parsed, place.folder, place.named, ColumnChoices(**choices)
    )
    report["interpretation"] = interpretation.facts
    report["notes"] += interpretation.experiment_notes
    raw = letor.dataset_of(parsed, interpretation)
    if not place.folder.is_dir():
        to_drop(raw, interpretation.drop_features)  # raises if they do not fit the file
        return interpretation
    report["prepared"] = about_prepared(prepare(raw))
    check_splits(report, raw.name)
    return interpretation


def place_to_check(path: str, data_dir: str | None, fold: int | None) -> Place:
    """Return the file or the fold folder that a path or a name stands for."""
    from ebrank.data.loading import Place, place_of, preset_named, refuse_fold
    from ebrank.data.published import find, named_by

    if preset_named(path) is not None:
        raise ParameterError(f"{path} is a synthetic preset: there are no files to check")
    if find(path) is None and (file := expanded(path)).is_file():
        refuse_fold(fold, file)
        return Place(file, named_by(file.absolute()))
    return place_of(path, data_dir=data_dir, fold=fold)


def about_prepared(dataset: Dataset) -> dict[str, Any]:
    """Return what preparation leaves."""
    from ebrank.data.dataset import SPLITS

    return {
        "queries": dataset.n_queries,
        "rows": dataset.n_rows,
        "features": dataset.n_features,
        "max_label": dataset.max_label,
        "splits": {split: len(dataset.queries_in(split)) for split in SPLITS},
    }


def check_splits(report: dict[str, Any], name: str) -> None:
    """Raise if there is no test query left; warn if there is no validation query."""
    splits = report["prepared"]["splits"]
    if splits["vali"] == 0:
        report["warnings"].append(
            f"no validation query of {name!r} has more than 5 candidates: "
            "`tune` and `reproduce` cannot choose parameters"
        )
    if splits["test"] == 0:
        raise DataError(
            f"no test query of {name!r} has more than 5 candidates and a relevant item",
            remedy="Add such queries to test.txt: ebrank measures rankers on them.",
        )


def print_report(report: dict[str, Any], interpretation: Interpretation) -> None:
    """Print the report for people: results to stdout, notes and warnings to stderr."""
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
    click.echo(str(interpretation))
    if report["prepared"]:
        left = report["prepared"]
        splits = "/".join(str(count) for count in left["splits"].values())
        click.echo(
            f"After preparation: {left['queries']:,} queries ({splits}), {left['rows']:,} rows, "
            f"{left['features']} features"
        )
    for note in report["notes"]:
        console.note(note)
    for warning in report["warnings"]:
        console.warn(warning)
