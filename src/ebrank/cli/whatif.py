"""`ebrank whatif`: what other policies would do with the traffic of a log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ebrank.cli import console, lab
from ebrank.cli.history import watched_store
from ebrank.cli.options import history_options, json_option, option
from ebrank.cli.verbs import verb

if TYPE_CHECKING:
    from ebrank.service.settings import Settings
    from ebrank.service.store.base import StoreView
    from ebrank.whatif.replay import Begin


@verb()
@history_options
@option(
    "--policy POLICY",
    "A policy, or any ranker of the lab; `today` is the one in use. Repeat it for several; "
    "default: today and auto.",
    called="policies",
    multiple=True,
)
@option(
    "--from WHEN",
    "Begin with today's evidence, or with none at the start of the log.",
    called="begin",
    type=click.Choice(["today", "start"]),
    default="today",
)
@option("--worlds N", "Worlds to draw.", type=click.IntRange(min=2), default=32)
@option(
    "--lists N", "Lists to serve; default: as many as the log has.", type=click.IntRange(min=20)
)
@option("--length N", "Items in a list; default: as in the log.", type=click.IntRange(min=1))
@option("--seed N", "Seed of all draws.", type=int, default=0)
@option("--out FOLDER", "Folder for a page to read, with its table and figure.")
@json_option
def whatif(
    path: str,
    config: str | None,
    features: str | None,
    policies: tuple[str, ...],
    begin: Begin,
    worlds: int,
    lists: int | None,
    length: int | None,
    seed: int,
    out: str | None,
    as_json: bool,
) -> None:
    """Forecast what policies would do with the traffic of a log.

    The log leaves many worlds possible: how relevant each item is, and how far down users look.
    Each policy serves the log's traffic in the same worlds, drawn at random, and learns from the
    users there. Results are means over worlds with 90 % intervals; differences are paired within
    worlds.

    `today` is the policy of the settings (--config) for a store. For evidence it is the order of
    the log's lists, as it is: items by their share of attention, new ones last. If what you run
    learns from clicks, name it, such as `smoothedctr`.

    Nothing is written to the store, which may be in use.

    Examples:
        ebrank whatif ebrank-store --policy today --policy "ebrank:epsilon=20"
        ebrank whatif evidence.parquet --features items.csv --policy smoothedctr
        ebrank whatif evidence.parquet --from start --worlds 64 --out forecast
        ebrank whatif exports/2026-11 --policy auto --json
    """
    from ebrank.logs import read_evidence
    from ebrank.service.ops.whatif import history_of
    from ebrank.whatif import History
    from ebrank.whatif import forecast as made

    def of_evidence(settings: Settings) -> History:
        evidence = read_evidence(path, features=features, missing="drop")
        if evidence.dropped:
            console.note(f"{evidence.dropped:,} items have no features in {features}: left out")
        return History.of_evidence(evidence, path, settings.examination.examination())

    async def of_store(store: StoreView, settings: Settings) -> History:
        return await history_of(store, settings, path)

    history = asyncio.run(watched_store(path, config, features, of_store, of_evidence))
    with lab.note_of_compilation(), console.progress("replaying") as progress:
        forecast = made.whatif(
            history,
            policies or (made.TODAY, "auto"),
            begin=begin,
            worlds=worlds,
            lists=lists,
            length=length,
            seed=seed,
            progress=progress,
        )
    if as_json:
        console.print_json({"path": path} | made.plain(forecast))
    else:
        from ebrank.report.whatif import sentences, table

        shown = table(forecast)
        click.echo(click.style(shown.title, bold=True))
        console.print_table(tuple(map(str, shown.columns)), [row.cells for row in shown.rows])
        for sentence in (*sentences(forecast), shown.caption):
            click.echo(console.wrapped(sentence))
    for note in forecast.notes:
        console.note(note)
    if out is not None:
        from ebrank.report.whatif import write

        click.echo(f"Page: {write(forecast, Path(out))}", err=True)
