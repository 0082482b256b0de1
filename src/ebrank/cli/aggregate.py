"""`ebrank aggregate`: logs of any size, counted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option

if TYPE_CHECKING:
    from ebrank.logs import Report


@click.command(
    "aggregate",
    epilog=examples(
        "ebrank aggregate logs/*.parquet --out evidence.parquet",
        "ebrank aggregate log.csv --map query=search_term --out evidence.parquet",
        "ebrank aggregate log.csv --behavior click=0.3 --behavior buy --out e.parquet",
        "ebrank aggregate events.ndjson --ubi --lists queries.ndjson --out e.parquet",
        "ebrank aggregate logs --engine spark --memory '8 GB' --out evidence.parquet",
    ),
)
@click.argument("log", nargs=-1, required=True)
@click.option(
    "--out", required=True, metavar="FILE", help="The Parquet file to write; must not exist."
)
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="Engine that computes; the results are the same.",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Columns of ranking, query, item, type, rank, value and time, if they have other names; "
    "lists.FIELD=COLUMN for the file of lists. A dot reaches into nested columns.",
)
@click.option("--ubi", is_flag=True, help="The columns are those of User Behavior Insights.")
@click.option(
    "--lists",
    multiple=True,
    metavar="FILE",
    help="Lists that were served: ranking, query, and items by rank. Gives events their queries.",
)
@click.option(
    "--impressions",
    type=click.Choice(["served", "confirmed"]),
    default="confirmed",
    show_default=True,
    help="Whether an item counts as shown when its list was served, or when an event confirms it.",
)
@click.option(
    "--behavior",
    "behaviors",
    multiple=True,
    metavar="TYPE[=WORTH]",
    help="An event type that counts, and its worth up to 1; dwell>=30=0.6 sets a threshold.  "
    "[default: click]",
)
@click.option(
    "--negative",
    multiple=True,
    metavar="TYPE",
    help="An event type that makes an impression worth nothing, such as hide.",
)
@click.option(
    "--impression",
    default="impression",
    show_default=True,
    metavar="TYPE",
    help="The event type of impressions.",
)
@click.option(
    "--first-rank",
    type=click.IntRange(0, 1),
    default=1,
    show_default=True,
    help="Number of the first rank in the log.",
)
@click.option("--skip-bad", is_flag=True, help="Skip bad rows instead of stopping at the first.")
@click.option(
    "--memory",
    default="4 GB",
    show_default=True,
    metavar="SIZE",
    help="Memory for the engine; the rest spills to disk.",
)
@click.option(
    "--spill", metavar="FOLDER", help="Where to spill.  [default: next to the output file]"
)
@click.option(
    "--threads", type=click.IntRange(min=1), metavar="N", help="Cores to use.  [default: all]"
)
@click.option("--master", metavar="URL", help="A Spark cluster.  [default: this machine]")
@json_option
def command(
    log: tuple[str, ...],
    out: str,
    maps: tuple[str, ...],
    ubi: bool,
    behaviors: tuple[str, ...],
    negative: tuple[str, ...],
    memory: str,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (of `ebrank.logs.aggregate`)
) -> None:
    """Turn logs of any size into evidence for each query and item.

    LOG is Parquet, CSV or NDJSON, or a folder of such files, with a row for each impression and
    each click and the id of its list. An event counts once per list, item and type, however often
    it is logged. Use the result to start a store (`ebrank import`), to estimate how far down users
    look (`ebrank examine`), or to fit a ranker (`ebrank.logs.read_evidence`): see docs/scale.md.
    """
    from ebrank.evidence.behaviors import CLICKS, Behaviors
    from ebrank.logs import UBI, FieldMap, aggregate
    from ebrank.parameters import bytes_of

    with console.progress("reading") as progress:
        report = aggregate(
            log,
            out,
            fields=FieldMap.of(maps, UBI if ubi else None),
            behaviors=Behaviors.parse(behaviors or CLICKS.names, negative),
            memory=bytes_of(memory),
            **options,
            progress=progress,
        )
    if as_json:
        console.print_json({"out": out} | asdict(report))
    else:
        print_report(out, report)


def print_report(out: str, report: Report) -> None:
    """Print what counted, and warn about what did not."""
    outcomes = ", ".join(f"{count:,} {name}" for name, count in report.outcomes.items())
    click.echo(
        f"{out}: {report.impressions:,} impressions ({outcomes}) from {report.events:,} events, "
        f"{report.rows:,} rows, {report.seconds:.1f} s"
    )
    if report.ignored:
        types = ", ".join(f"{kind or '(none)'} ({n:,})" for kind, n in report.ignored.items())
        console.note(f"ignored event types: {types}")
    for field, count in report.bad.items():
        console.warn(f"left out {count:,} events: {field} is missing or invalid")
    if report.unlisted:
        console.warn(f"left out {report.unlisted:,} items that have events but are in no list")
    if report.unplaced:
        console.warn(
            f"left out {report.unplaced:,} items that have a behavior but no impression or rank"
        )
