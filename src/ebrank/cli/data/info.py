"""`ebrank data info`: what a dataset holds, what preparation does to it, how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import dataset_options, json_option

if TYPE_CHECKING:
    from ebrank.data.interpretation import ColumnChoices
    from ebrank.data.published import PublishedDataset


@click.command(
    "info",
    epilog=examples(
        "ebrank data info MQ2007",
        "ebrank data info mq2007-like",
        "ebrank data info MSLR-WEB10K --data-dir ~/datasets --json",
        "ebrank data info my-folder --drop-features none",
    ),
)
@click.argument("name")
@dataset_options
@json_option
def command(
    name: str,
    data_dir: str | None,
    fold: int | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401
) -> None:
    """Describe a dataset and how to get it.

    NAME is a published dataset, a synthetic preset, or the path of a folder with train.txt,
    vali.txt and test.txt.
    """
    from ebrank.data.interpretation import ColumnChoices
    from ebrank.data.loading import preset_named, refuse_for_presets
    from ebrank.data.published import find

    published, preset, choices = find(name), preset_named(name), ColumnChoices(**options)
    if published is not None:
        about = about_published(published, data_dir, fold, choices)
    elif preset is not None:
        refuse_for_presets(choices, data_dir=data_dir, fold=fold)
        about = about_preset(preset, choices)
    else:
        about = about_folder(name, fold, choices)
    if as_json:
        console.print_json(about)
        return
    console.print_facts(about["name"], in_words(about))
    for note in about["notes"]:
        console.note(note)


def about_published(
    published: PublishedDataset, data_dir: str | None, fold: int | None, choices: ColumnChoices
) -> dict[str, Any]:
    """Return what is known about a published dataset."""
    from ebrank.data.interpretation import interpret
    from ebrank.data.loading import how_to_place, locate, sought
    from ebrank.environment import config as settings

    root = settings.data_dir(data_dir)
    folder = locate(published, root, fold or 1)
    interpretation = interpret(
        published.name,
        n_features=published.feature_set.n_features,
        largest_label=published.feature_set.max_label,
        named=published,
        choices=choices,
    )
    return {
        "name": published.name,
        "kind": "published",
        **published.size._asdict(),
        "files": {split: size._asdict() for split, size in published.first_fold.items()},
        "features": published.feature_set.n_features,
        "interpretation": interpretation.facts,
        "notes": interpretation.experiment_notes,
        "paper_queries": published.paper_queries,
        "path": None if folder is None else str(folder),
        "missing": sought(published, root, fold or 1) if folder is None else None,
        "page": published.page,
        "terms": published.terms,
        "setup": how_to_place(published),
    }


def about_preset(name: str, choices: ColumnChoices) -> dict[str, Any]:
    """Return what is known about a synthetic preset."""
    from ebrank.data.interpretation import AUTO, Interpretation
    from ebrank.data.presets import PRESETS

    preset = PRESETS[name]
    dropped = () if choices.drop_features == AUTO else tuple(choices.drop_features or ())
    interpretation = Interpretation(
        name, None, None, preset.baseline_feature, dropped, preset.max_label
    )
    return {
        "name": name,
        "kind": "synthetic",
        **preset.size._asdict(),
        "features": preset.n_features,
        "interpretation": interpretation.facts,
        "notes": interpretation.experiment_notes,
    }


def about_folder(name: str, fold: int | None, choices: ColumnChoices) -> dict[str, Any]:
    """Parse the files of a folder and return what they contain."""
    from ebrank.data import letor
    from ebrank.data.loading import place_of

    place = place_of(name, fold=fold)
    with console.progress("reading") as progress:
        parsed = letor.parse(place.folder, progress=progress)
    totals = letor.totals(parsed.files)
    interpretation = letor.interpretation_of(parsed, place.folder, place.named, choices)
    return {
        "name": str(place.folder),
        "kind": "folder",
        "queries": totals["queries"],
        "rows": totals["rows"],
        "files": {split: size._asdict() for split, size in letor.sizes(parsed.files).items()},
        "features": totals["features"],
        "interpretation": interpretation.facts,
        "notes": interpretation.experiment_notes,
        "path": str(place.folder),
    }


def in_words(about: dict[str, Any]) -> dict[str, str]:
    """Return the same for people."""
    columns = about["interpretation"]
    synthetic = about["kind"] == "synthetic"
    rows = f"{'about ' if synthetic else ''}{about['rows']:,} rows"
    words = {
        "kind": about["kind"] + _recognized(columns),
        "size": f"{about['queries']:,} queries, {rows}",
        "fold 1" if about["kind"] == "published" else "files": "\n".join(
            f"{split}: {size['queries']:,} queries, {size['rows']:,} rows"
            for split, size in (about.get("files") or {}).items()
        ),
        "features": str(about["features"]),
        "baseline": f"feature {columns['baseline_feature']} (BM25)"
        if columns["baseline_feature"]
        else "none; the initial order is random",
        "labels": f"0–{columns['max_label']}",
        "preparation": _preparation(columns["drop_features"]),
        "paper": f"{about['paper_queries']:,} queries after filtering"
        if about.get("paper_queries")
        else "",
        "where": "built in, generated on use"
        if synthetic
        else about["path"] or f"not found: {about['missing']}",
        "in Python": f'ebrank.load("{about["name"]}"{", scale=0.1" if synthetic else ""})',
        "get it from": about.get("page", ""),
        "terms": about.get("terms", ""),
        "set it up": about.get("setup", ""),
    }
    return {name: text for name, text in words.items() if text}


def _recognized(columns: dict[str, Any]) -> str:
    from ebrank.data.interpretation import BY_COUNT

    if columns["feature_set"] is None:
        return ""
    by_count = columns["recognized_by"] == BY_COUNT
    return f", {columns['feature_set']} features" + (" (by their number)" if by_count else "")


def _preparation(drop_features: list[int]) -> str:
    from ebrank.data.interpretation import as_text

    removed = ""
    if drop_features:
        removed = f"features {as_text(tuple(drop_features))}, derived from clicks, are removed; "
    return (
        f"{removed}queries with more than 5 candidates are kept, of test queries only those with a "
        "relevant item; features are scaled to [0, 1] within each query; features constant over "
        "train are removed"
    )
