"""`ebrank data info`: what a dataset holds, what preparation does to it, how to get it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import data_dir_option, json_option

if TYPE_CHECKING:
    from ebrank.data.catalog import Entry, Family


@click.command(
    "info",
    epilog=examples(
        "ebrank data info MQ2007",
        "ebrank data info mq2007-like",
        "ebrank data info MSLR-WEB10K --data-dir ~/datasets --json",
    ),
)
@click.argument("name")
@data_dir_option
@json_option
def command(name: str, data_dir: str | None, as_json: bool) -> None:
    """Describe a dataset and how to get it.

    NAME is a published dataset, a synthetic preset, or the path of a folder with train.txt,
    vali.txt and test.txt.
    """
    from ebrank.data.catalog import find
    from ebrank.data.locate import preset_named

    entry, preset = find(name), preset_named(name)
    if entry is not None:
        about = about_entry(entry, data_dir)
    elif preset is not None:
        about = about_preset(preset)
    else:
        about = about_folder(name)
    if as_json:
        console.print_json(about)
    else:
        console.print_facts(about["name"], in_words(about))


def about_entry(entry: Entry, data_dir: str | None) -> dict[str, Any]:
    """Return what is known of a published dataset."""
    from ebrank import settings
    from ebrank.data import locate

    root = settings.data_dir(data_dir)
    folder = locate.locate(entry, root)
    return {
        "name": entry.name,
        "kind": "published",
        "queries": entry.queries,
        "rows": entry.rows,
        "files": {split: asdict(size) for split, size in entry.first_fold.items()},
        "features": entry.family.n_features,
        "max_label": entry.family.max_label,
        **about_family(entry.family),
        "paper_queries": entry.paper_queries,
        "path": None if folder is None else str(folder),
        "missing": locate.sought(entry, root) if folder is None else None,
        "page": entry.page,
        "terms": entry.terms,
        "setup": locate.how_to_place(entry),
    }


def about_preset(name: str) -> dict[str, Any]:
    """Return what is known of a synthetic preset."""
    from ebrank.data.presets import PRESETS

    preset = PRESETS[name]
    return {
        "name": name,
        "kind": "synthetic",
        "queries": preset.queries,
        "rows": preset.queries * preset.mean_candidates,
        "features": preset.n_features,
        "max_label": preset.max_label,
        "family": None,
        "baseline_feature": preset.baseline_feature,
        "behavior_features": [],
    }


def about_folder(name: str) -> dict[str, Any]:
    """Return what is in a folder of files, which are parsed for it."""
    from ebrank.data import letor
    from ebrank.data.catalog import recognize
    from ebrank.data.locate import place_of

    place = place_of(name)
    with console.progress("reading") as progress:
        files = letor.parse(place.folder, progress=progress).files
    totals = letor.totals(files)
    return {
        "name": str(place.folder),
        "kind": "folder",
        **totals,
        "files": {split: asdict(size) for split, size in letor.sizes(files).items()},
        **about_family(recognize(totals["features"])),
        "path": str(place.folder),
    }


def about_family(family: Family | None) -> dict[str, Any]:
    """Return what a family says about its features."""
    return {
        "family": family.name if family else None,
        "baseline_feature": family.baseline_feature if family else None,
        "behavior_features": list(family.behavior_features) if family else [],
    }


def in_words(about: dict[str, Any]) -> dict[str, str]:
    """Return the same for people."""
    synthetic = about["kind"] == "synthetic"
    rows = f"{'about ' if synthetic else ''}{about['rows']:,} rows"
    baseline = about["baseline_feature"]
    bm25 = f"BM25 is feature {baseline}" if baseline else "say which is BM25: --baseline-feature"
    words = {
        "kind": about["kind"] + (f", {about['family']} features" if about["family"] else ""),
        "size": f"{about['queries']:,} queries, {rows}",
        "fold 1" if about["kind"] == "published" else "files": "\n".join(
            f"{split}: {size['queries']:,} queries, {size['rows']:,} rows"
            for split, size in (about.get("files") or {}).items()
        ),
        "features": f"{about['features']}; {bm25}",
        "labels": f"0–{about['max_label']}",
        "preparation": _preparation(about["behavior_features"]),
        "paper": f"{about['paper_queries']:,} queries after filtering"
        if about.get("paper_queries")
        else "",
        "where": "built in, made when used"
        if synthetic
        else about["path"] or f"not found: {about['missing']}",
        "in Python": f'ebrank.load("{about["name"]}"{", scale=0.1" if synthetic else ""})',
        "get it from": about.get("page", ""),
        "terms": about.get("terms", ""),
        "set it up": about.get("setup", ""),
    }
    return {name: text for name, text in words.items() if text}


def _preparation(behavior_features: list[int]) -> str:
    numbers = ", ".join(map(str, behavior_features))
    removed = f"features {numbers}, made from clicks, are removed; " if numbers else ""
    return (
        f"{removed}queries with more than 5 candidates are kept, of test queries only those with a "
        "relevant item; features are scaled to [0, 1] within each query; features constant over "
        "train are removed"
    )
