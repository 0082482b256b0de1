"""`ebrank data`: which datasets there are, where they are, and whether they are sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lab_options import ALL_FOLDS, DATA_DIR, dataset_options
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import verb, verbs
from ebrank.errors import DataError, EBRankError, ParameterError

if TYPE_CHECKING:
    from ebrank.lab.data.interpretation import Interpretation
    from ebrank.lab.data.presets import SyntheticPreset
    from ebrank.lab.data.published import PublishedDataset
    from ebrank.lab.data.shop import ShopLike

COUNTS = ("queries", "rows", "features", "max_label")


# --- ebrank data list ----------------------------------------------------------------------------


@verb(name="list")
def list_datasets(data_dir: str | None = DATA_DIR, as_json: bool = AS_JSON) -> None:
    """List the known datasets and where they are.

    Published datasets are looked for in the data folder; synthetic presets are built in.

    Examples:
        ebrank data list
        ebrank data list --data-dir ~/datasets --json
    """
    from ebrank.environment import config as settings
    from ebrank.lab.data.loading import locate
    from ebrank.lab.data.presets import PRESETS
    from ebrank.lab.data.published import PUBLISHED
    from ebrank.lab.data.shop import ShopLike

    root = settings.data_dir(data_dir)
    datasets = [
        listed(dataset, dataset.feature_set, locate(dataset, root)) for dataset in PUBLISHED
    ]
    built_in: list[SyntheticPreset | ShopLike] = [*PRESETS.values(), ShopLike()]
    datasets += [listed(preset, preset) for preset in built_in]
    if as_json:
        folder = None if root is None else str(root.path)
        console.print_json({"data_dir": folder, "datasets": datasets})
        return
    headings = ("name", "queries", "rows", "features", "labels", "where")
    console.print_rows(headings, list(map(_row, datasets)))
    if root is None:
        click.echo("No data folder is set: use --data-dir or EBRANK_DATA to name one.")
    else:
        absent = "" if root.path.is_dir() else ", which does not exist"
        click.echo(f"Data folder: {root.path} (from {root.origin}){absent}")
    click.echo("How to get a dataset: ebrank data check NAME")


def listed(
    dataset: PublishedDataset | SyntheticPreset | ShopLike,
    columns: Any,  # noqa: ANN401 (a feature set, or a preset)
    folder: Path | None = None,
) -> dict[str, Any]:
    """Return the list entry of a dataset; a preset's row count is an expectation."""
    return {
        "name": dataset.name,
        "kind": "synthetic" if columns is dataset else "published",
        **dataset.size._asdict(),
        "features": columns.n_features,
        "max_label": columns.max_label,
        "path": None if folder is None else str(folder),
    }


def _row(dataset: dict[str, Any]) -> tuple[object, ...]:
    rows, where = dataset["rows"], "not found"
    if dataset["kind"] == "synthetic":
        rows, where = f"≈ {rows:,}", "built in"
    elif dataset["path"] is not None:  # below the data folder, which is shown once
        parts = Path(dataset["path"]).parts
        where = str(Path(*parts[-2 if parts[-1].lower().startswith("fold") else -1 :]))
    labels = f"0–{dataset['max_label']}"
    return dataset["name"], dataset["queries"], rows, dataset["features"], labels, where


# --- ebrank data check ---------------------------------------------------------------------------


@verb(dataset_options)
def check(path: str, as_json: bool = AS_JSON, **options: Any) -> None:  # noqa: ANN401
    """Parse a dataset and count its queries, rows, features and labels.

    PATH is a file, a folder with train.txt, vali.txt and test.txt, or the name of a published
    dataset. Exit code 0 means that the dataset is usable. 2 means that a file is bad, that the
    options do not fit the files, or that nothing is left to learn from or to measure on; the error
    says why, and names the first bad line.

    Examples:
        ebrank data check ~/datasets/MQ2008/Fold1
        ebrank data check train.txt
        ebrank data check MSLR-WEB10K --data-dir ~/datasets --json
        ebrank data check my-folder --baseline-feature 3 --drop-features 9-11
    """
    keys = ("files", "all", "interpretation", "prepared", "notes", "warnings", "error")
    report: dict[str, Any] = {"path": path, "ok": False, **dict.fromkeys(keys)}
    report |= {"files": [], "notes": [], "warnings": []}
    try:
        with console.progress("reading") as progress:
            interpretation = fill(report, progress, options)
    except (EBRankError, OSError) as problem:
        if not as_json:
            raise
        where = problem if isinstance(problem, DataError) else DataError("")
        report["error"] = {"message": str(problem), "path": where.path, "line": where.line}
        console.print_json(report)
        raise click.exceptions.Exit(2) from None
    report["ok"] = True
    if as_json:
        console.print_json(report)
    else:
        print_report(report, interpretation)


def fill(
    report: dict[str, Any], progress: Callable[[int, int], None], options: dict[str, Any]
) -> Interpretation:
    """Fill the report with what its path holds; raise if the input is bad."""
    from ebrank.lab.data import letor
    from ebrank.lab.data.dataset import SPLITS
    from ebrank.lab.data.interpretation import ColumnChoices
    from ebrank.lab.data.loading import differences_at, place_of, preset_named
    from ebrank.lab.data.preparation import prepare, to_drop

    path, where = report["path"], {name: options.pop(name) for name in ("data_dir", "fold")}
    if where["fold"] == ALL_FOLDS:
        raise ParameterError("files are checked one fold at a time; choose one with --fold")
    if preset_named(path) is not None:
        raise ParameterError(f"{path} is a synthetic preset: there are no files to check")
    place = place_of(path, **where, files=True)
    parsed = letor.parse(place.folder, progress=progress)
    report["path"] = str(place.folder)
    report["files"] = [{"path": file.path, **letor.totals([file])} for file in parsed.files]
    report["all"] = letor.totals(parsed.files)
    features = report["all"]["features"]
    report["warnings"] += differences_at(place, letor.sizes(parsed.files), features)
    interpretation = letor.interpretation_of(
        parsed, place.folder, place.named, ColumnChoices(**options)
    )
    report |= {"interpretation": interpretation.facts, "notes": interpretation.experiment_notes}
    raw = letor.dataset_of(parsed, interpretation)
    if not place.folder.is_dir():
        to_drop(raw, interpretation.drop_features)  # raises if they do not fit the file
        return interpretation
    prepared = prepare(raw)
    splits = {split: len(prepared.queries_in(split)) for split in SPLITS}
    report["prepared"] = {
        "queries": prepared.n_queries,
        "rows": prepared.n_rows,
        "features": prepared.n_features,
        "max_label": prepared.max_label,
        "splits": splits,
    }
    if splits["vali"] == 0:
        report["warnings"].append(
            f"no validation query of {raw.name!r} has more than 5 candidates: "
            "`tune` and `reproduce` cannot choose parameters"
        )
    if splits["test"] == 0:
        raise DataError(
            f"no test query of {raw.name!r} has more than 5 candidates and a relevant item",
            remedy="Add such queries to test.txt: ebrank measures rankers on them.",
        )
    return interpretation


def print_report(report: dict[str, Any], interpretation: Interpretation) -> None:
    """Print the report for people: results to stdout, notes and warnings to stderr."""
    click.echo(report["path"])
    files = [(Path(file["path"]).name, *map(file.get, COUNTS)) for file in report["files"]]
    console.print_rows(("file", *COUNTS), [*files, ("all", *map(report["all"].get, COUNTS))])
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


@verbs(list_datasets, check)
def data() -> None:
    """List and check datasets.

    Examples:
        ebrank data list
        ebrank data check ~/datasets/MQ2008/Fold1
    """
