"""`ebrank data list`: the known datasets and where they are."""

from __future__ import annotations

from typing import Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import data_dir_option, json_option


@click.command(
    "list",
    epilog=examples("ebrank data list", "ebrank data list --data-dir ~/datasets --json"),
)
@data_dir_option
@json_option
def command(data_dir: str | None, as_json: bool) -> None:
    """List the known datasets and where they are.

    Published datasets are looked for in the data folder; synthetic presets are built in.
    """
    from ebrank.environment import config as settings

    root = settings.data_dir(data_dir)
    datasets = [*published(root), *synthetic()]
    if as_json:
        folder = None if root is None else str(root.path)
        console.print_json({"data_dir": folder, "datasets": datasets})
        return
    console.print_table(
        ("name", "queries", "rows", "features", "labels", "where"),
        [_row(dataset) for dataset in datasets],
    )
    if root is None:
        click.echo("No data folder is set: use --data-dir or EBRANK_DATA to name one.")
    else:
        absent = "" if root.path.is_dir() else ", which does not exist"
        click.echo(f"Data folder: {root.path} (from {root.origin}){absent}")
    click.echo("How to get a dataset: ebrank data info NAME")


def published(root: Any) -> list[dict[str, Any]]:  # noqa: ANN401 (DataDir is imported late)
    """Return the published datasets."""
    from ebrank.data.loading import locate
    from ebrank.data.published import PUBLISHED

    return [
        {
            "name": dataset.name,
            "kind": "published",
            **dataset.size._asdict(),
            "features": dataset.feature_set.n_features,
            "max_label": dataset.feature_set.max_label,
            "path": None if (folder := locate(dataset, root)) is None else str(folder),
        }
        for dataset in PUBLISHED
    ]


def synthetic() -> list[dict[str, Any]]:
    """Return the synthetic presets; their rows are what is expected."""
    from ebrank.data.presets import PRESETS

    return [
        {
            "name": preset.name,
            "kind": "synthetic",
            **preset.size._asdict(),
            "features": preset.n_features,
            "max_label": preset.max_label,
            "path": None,
        }
        for preset in PRESETS.values()
    ]


def _row(dataset: dict[str, Any]) -> tuple[object, ...]:
    made = dataset["kind"] == "synthetic"
    where = "built in" if made else _last_parts(dataset["path"])
    rows = f"≈ {dataset['rows']:,}" if made else dataset["rows"]
    labels = f"0–{dataset['max_label']}"
    return dataset["name"], dataset["queries"], rows, dataset["features"], labels, where


def _last_parts(path: str | None) -> str:
    """Return the part of a dataset's path below the data folder, which is shown once."""
    from pathlib import Path

    if path is None:
        return "not found"
    folder = Path(path)
    depth = 2 if folder.name.lower().startswith("fold") else 1
    return str(Path(*folder.parts[-depth:]))
