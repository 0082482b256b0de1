"""`ebrank report`: the report of a reproduction, rewritten from its results."""

from __future__ import annotations

from pathlib import Path

import click

from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option


@click.command(
    "report",
    epilog=examples(
        "ebrank report reproduction/mq2007-like",
        "ebrank report mq2008 --out mq2008-report",
        "ebrank report mq2008 --json",
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder for the report, by default the folder of the results.",
)
@json_option
def command(folder: str, out: str | None, as_json: bool) -> None:
    """Rewrite the report of a reproduction from its results.

    DIR is a folder that `ebrank reproduce` wrote. This makes report.html, the tables, the figures
    and LEDGER.md from its results.json, without running anything. It removes files of an earlier
    report that are no longer part of it, and leaves other files alone.
    """
    from ebrank.cli import console
    from ebrank.experiments.document import read_document, read_times
    from ebrank.report.write import write_report

    document = read_document(Path(folder))
    written = write_report(document, read_times(Path(folder)), Path(out or folder))
    if as_json:
        console.print_json({"files": [str(path) for path in written]})
        return
    tables, figures = (
        len({path.stem for path in written if path.parent.name == kind})
        for kind in ("tables", "figures")
    )
    click.echo(f"{written[0]}: {tables} tables and {figures} figures, each also in its own file")
