"""`ebrank import`: a store made from an export or from evidence."""

from __future__ import annotations

import asyncio

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.environment.paths import expanded


@click.command(
    "import",
    epilog=examples(
        "ebrank import exports/2026-11 new-store",
        "ebrank import evidence.parquet new-store --features items.parquet",
    ),
)
@click.argument("path", metavar="EXPORT|EVIDENCE")
@click.argument("store")
@click.option(
    "--features",
    metavar="FILE",
    help="Features of items, for evidence: columns item, optionally query, and numbers.",
)
@click.option(
    "--literal",
    is_flag=True,
    help="Do not normalize query names in evidence (store.normalize_queries = false).",
)
@json_option
def command(path: str, store: str, features: str | None, literal: bool, as_json: bool) -> None:
    """Create a store from an export or from the output of `ebrank aggregate`.

    STORE appears only once it is complete and its counters match the export. Without --features,
    items in evidence are inactive until you put them; they keep their history. With --features,
    items that the table lacks are left out, and their history with them.
    """
    from ebrank.logs.evidence_file import is_evidence

    if is_evidence(path):
        rows = evidence_imported(path, store, features, literal=literal)
    elif features is not None or literal:
        raise click.UsageError(
            "--features and --literal work only with evidence, not with an export."
        )
    else:
        rows = export_imported(path, store)
    if as_json:
        console.print_json({"store": store, "rows": rows})
    else:
        told = ", ".join(f"{count:,} {name}" for name, count in rows.items())
        click.echo(f"{store}: {told}")


def export_imported(path: str, store: str) -> dict[str, int]:
    """Make a store from an export; return the rows of each table."""
    from ebrank.service.ops.transfer.exported import Exported
    from ebrank.service.ops.transfer.importing import import_store

    exported = Exported(expanded(path))
    with console.progress("importing") as progress:
        asyncio.run(import_store(exported, store, progress))
    rows: dict[str, int] = exported.manifest["rows"]
    return rows


def evidence_imported(
    path: str, store: str, features: str | None, *, literal: bool
) -> dict[str, int]:
    """Make a store from evidence; return how many queries and items it has."""
    from ebrank.logs import read_evidence
    from ebrank.service.ops.transfer.evidence import import_evidence

    evidence = read_evidence(path, features=features, missing="drop")
    if evidence.dropped:
        console.note(f"{evidence.dropped:,} items have no features in {features} and were left out")
    if features is None:
        console.note("without --features, items stay inactive until you put them")
    with console.progress("importing") as progress:
        asyncio.run(import_evidence(evidence, store, normalize=not literal, progress=progress))
    return {"queries": len(evidence.queries), "items": len(evidence)}
