"""What users did before: `ebrank aggregate`, `import`, `examine`, `judgments` and `whatif`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import click

from ebrank.cli import console, lab
from ebrank.cli.options import AS_JSON, FEATURES, HISTORY, SETTINGS
from ebrank.cli.verbs import REQUIRED, arg, opt, verb
from ebrank.environment.paths import expanded
from ebrank.errors import ParameterError

if TYPE_CHECKING:
    from ebrank.addons.logs.aggregation import Application
    from ebrank.addons.logs.importing import Imported
    from ebrank.service.settings import Settings
    from ebrank.service.store.base import Store

T = TypeVar("T")

BAR = 24
"""The longest bar of a table, in characters."""


@verb()
def aggregate(
    log: tuple[str, ...],
    out: str = opt(REQUIRED, "The Parquet file to write; must not exist.", "FILE"),
    maps: tuple[str, ...] = opt(
        (),
        "Columns of ranking, query, item, type, rank, value and time, if they have other names; "
        "lists.FIELD=COLUMN for the file of lists. A dot reaches into nested columns.",
        "--map FIELD=COLUMN",
    ),
    ubi: bool = opt(False, "The columns are those of User Behavior Insights."),
    lists: tuple[str, ...] = opt(
        (),
        "Lists that were served: ranking, query, and items by rank. Gives events their queries.",
        "FILE",
    ),
    impressions: Literal["served", "confirmed"] = opt(
        "confirmed",
        "Whether an item counts as shown when its list was served, or when an event confirms it.",
    ),
    behaviors: tuple[str, ...] = opt(
        (),
        "An event type that counts, and its worth up to 1; dwell>=30=0.6 sets a threshold.  "
        "[default: click]",
        "--behavior TYPE[=WORTH]",
    ),
    negative: tuple[str, ...] = opt(
        (), "An event type that makes an impression worth nothing, such as hide.", "TYPE"
    ),
    impression: str = opt("impression", "The event type of impressions.", "TYPE"),
    clicked: str | None = opt(
        None,
        "The log has a row for each item shown, and this column says whether it was clicked; it "
        "then needs no type, and no ranking either.",
        "COLUMN",
    ),
    first_rank: int | None = opt(
        None,
        "Number of the first rank in the log.  [default: 1; with --ubi, found out per application]",
        type=click.IntRange(0, 1),
    ),
    skip_bad: bool = opt(False, "Skip bad rows instead of stopping at the first."),
    memory: str = opt("4 GB", "Memory for DuckDB; the rest spills to disk.", "SIZE"),
    spill: str | None = opt(None, "Where to spill.  [default: next to the output file]", "FOLDER"),
    threads: int | None = opt(
        None, "Cores to use.  [default: all]", "N", type=click.IntRange(min=1)
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Turn logs of any size into evidence for each query and item.

    LOG is Parquet, CSV or NDJSON, or a folder of such files, with a row for each impression and
    each click and the id of its list. An event counts once per list, item and type, however often
    it is logged. Use the result to start a store (`ebrank import`), to estimate how far down users
    look (`ebrank examine`), or to fit a ranker (`ebrank.addons.logs.read_evidence`): see
    docs/scale.md.

    A log of User Behavior Insights needs no other option than --ubi: events and queries may be in
    one bulk file. Ranks come from served lists where there are any; otherwise the command finds out
    how each application counts, prints what it assumed, and says which events it left out and why.

    Examples:
        ebrank aggregate logs/*.parquet --out evidence.parquet
        ebrank aggregate shown.csv --clicked clicked --out evidence.parquet
        ebrank aggregate ubi.ndjson --ubi --out evidence.parquet
        ebrank aggregate log.csv --map query=search_term --out evidence.parquet
        ebrank aggregate log.csv --behavior click=0.3 --behavior buy --out e.parquet
        ebrank aggregate logs --memory '8 GB' --out evidence.parquet
    """
    from ebrank.addons.logs import UBI, FieldMap, aggregate
    from ebrank.evidence.behaviors import CLICKS, Behaviors
    from ebrank.parameters import bytes_of

    with console.progress("reading") as progress:
        report = aggregate(
            log,
            out,
            fields=FieldMap.of(maps, UBI if ubi else None),
            behaviors=Behaviors.parse(behaviors or CLICKS.names, negative),
            memory=bytes_of(memory),
            lists=lists,
            impressions=impressions,
            impression=impression,
            clicked=clicked,
            first_rank=first_rank,
            skip_bad=skip_bad,
            spill=spill,
            threads=threads,
            progress=progress,
        )
    if as_json:
        console.print_json({"out": out} | asdict(report))
        return
    outcomes = ", ".join(f"{count:,} {name}" for name, count in report.outcomes.items())
    click.echo(
        f"{out}: {report.impressions:,} impressions ({outcomes}) from {report.events:,} events, "
        f"{report.rows:,} rows, {report.seconds:.1f} s"
    )
    if report.applications:
        print_applications(report.applications)
    if report.ignored:
        types = ", ".join(f"{kind or '(none)'} ({n:,})" for kind, n in report.ignored.items())
        console.note(f"ignored event types: {types}; --behavior declares what counts")
    for field, count in report.bad.items() if not report.applications else ():
        console.warn(f"left out {count:,} events: {field} is missing or invalid")
    if report.unlisted:
        console.warn(f"left out {report.unlisted:,} items that have events but are in no list")
    if report.unplaced:
        console.warn(
            f"left out {report.unplaced:,} items that have a behavior but no impression or rank"
        )
    if report.repeated:
        console.note(
            f"{report.repeated:,} events repeat others of the same list, item and type, which "
            "count once"
        )
    for warning in report.warnings:
        console.warn(warning)


def print_applications(applications: Sequence[Application]) -> None:
    """Print what was assumed about the ranks of each application, and what was left out."""
    rows = list[tuple[object, ...]]()
    for each in applications:
        name = each.application or "(none)"
        if each.ranks:
            rows.append((name, each.ranks, each.evidence, each.used, ""))
        for reason, count in each.dropped.items():
            rows.append((name, "left out", reason, "", count))
    console.print_rows(("application", "ranks", "because", "used", "left out"), rows)


@verb(name="import")
def import_(
    path: str = arg("EVIDENCE"),
    store: str = arg(""),
    features: str | None = opt(
        None,
        "Features of items, for evidence: columns item, optionally query, and numbers.",
        "FILE",
    ),
    literal: bool = opt(
        False, "Do not normalize query names in evidence (store.normalize_queries = false)."
    ),
    config: str | None = opt(
        None, "Settings of the service that will use the store, in TOML.", "FILE"
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Create a store from the output of `ebrank aggregate`.

    STORE appears only once it is complete. Without --features, items are inactive until you put
    them; they keep their history. With --features, a first prior is trained at once. Items that the
    log lacks are kept: as candidates if the table names their query or the log has only one,
    otherwise in the catalog, until a rank or a PUT names them. Items that the table lacks are left
    out, and their history with them.

    Examples:
        ebrank import evidence.parquet new-store --features items.parquet
        ebrank import evidence.parquet new-store --config ebrank.toml --json
    """
    from ebrank.addons.logs import read_evidence
    from ebrank.addons.logs.importing import import_evidence
    from ebrank.service.ops import configuration

    settings = configuration.read(config, environment=os.environ)
    if literal:
        settings = replace(settings, store=replace(settings.store, normalize_queries=False))
    evidence = read_evidence(path, features=features, missing="drop")
    with console.progress("importing and training") as progress:
        making = import_evidence(evidence, store, settings=settings, progress=progress)
        came = asyncio.run(making)
    lines = imported_lines(store, came, features)
    console.answer(as_json, {"store": store} | asdict(came), *lines)


def imported_lines(store: str, came: Imported, features: str | None) -> list[str]:
    """Return what came in, in words, and say what is not as one might expect."""
    behaviors = ", ".join(f"{count:,} {name}" for name, count in came.behaviors.items())
    queries = "1 query" if came.queries == 1 else f"{came.queries:,} queries"
    new = f", {came.new:,} without" if came.new else ""
    if came.dropped:
        console.note(f"{came.dropped:,} items have no features in {features} and were left out")
    if features is None:
        console.note("without --features, items stay inactive until you put them")
    return [
        f"{store}: {queries}, {came.items:,} items with history{new}; "
        f"{came.impressions:,} impressions ({behaviors})",
        f"prior: {came.prior}",
    ]


@verb()
def judgments(
    path: str = HISTORY,
    config: str | None = SETTINGS,
    features: str | None = FEATURES,
    out: str = opt(REQUIRED, "The file to write; must not exist.", "FILE"),
    format: Literal["opensearch", "quepid", "trec", "parquet"] = opt(
        "parquet", "For OpenSearch's workbench, Quepid, trec_eval, or any tool that reads Parquet."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Write how relevant each item is to its query, as users showed it.

    The judgment of an item that was shown is its posterior relevance, with a 90 % credible interval
    and its exposure in Parquet; other formats have no place for these. OpenSearch gets the
    relevance itself; Quepid and TREC get grades from 0 to 3, on which the most relevant item of the
    store has 3; TREC also a file queries.tsv beside the qrels.

    Examples:
        ebrank judgments ebrank-store --out judgments.parquet
        ebrank judgments ebrank-store --format opensearch --out judgments.json
        ebrank judgments evidence.parquet --format quepid --out ratings.csv
    """
    from ebrank.addons.judgments import WRITERS, judged

    target = expanded(out)
    for file in (target, *([target.with_name("queries.tsv")] if format == "trec" else [])):
        if file.exists():
            raise ParameterError(f"{file}: already exists. Name a new file.")
    with console.progress("judging"):
        found = asyncio.run(watched_store(path, config, features, judged))
    WRITERS[format](found, target)
    queries = len({judgment.query for judgment in found.all})
    document = {"out": out, "queries": queries, "judgments": len(found.all), "model": found.model}
    by = f"by model {found.model}" if found.model else "by a prior fitted now"
    line = f"{out}: {len(found.all):,} judgments of {queries:,} queries, {by}"
    console.answer(as_json, document, line)


@verb()
def examine(
    path: str = HISTORY,
    config: str | None = SETTINGS,
    features: str | None = FEATURES,
    as_json: bool = AS_JSON,
) -> None:
    """Estimate how far down users look.

    Items shown at several ranks reveal how likely users are to look at each rank, relative to the
    first. The support of a rank is its impressions, those of each item times the share of its
    impressions at other ranks. Where the support is too small or the error too large, the
    configured curve applies; everywhere, if fewer than 100 query-item pairs were shown. The store
    may be in use; a backup or the output of `ebrank aggregate` works too.

    Examples:
        ebrank examine ebrank-store
        ebrank examine evidence.parquet --features items.parquet
        ebrank examine ebrank-store --config ebrank.toml --json
    """
    from ebrank.addons.examining import examined
    from ebrank.model.prior.fitting import FEWEST_ROWS

    curve = asyncio.run(watched_store(path, config, features, examined))
    if as_json:
        console.print_json({"path": path} | asdict(curve))
    else:
        rows = [
            (
                f"{rank.first} to {rank.last}" if rank.first < rank.last else str(rank.first),
                f"{rank.probability:.3f}",
                f"± {rank.error:.3f}" if rank.learned else "configured",
                f"{rank.configured:.3f}",
                round(rank.support),
                "█" * round(BAR * rank.probability),
            )
            for rank in curve.ranks
        ]
        console.print_rows(("rank", "looks", "error", "configured", "support", ""), rows)
    if curve.pairs < FEWEST_ROWS:
        console.note(
            f"the configured curve applies: {curve.pairs} query-item pairs were shown, too few to "
            f"learn from; it takes {FEWEST_ROWS}"
        )


@verb()
def whatif(
    path: str = HISTORY,
    config: str | None = SETTINGS,
    features: str | None = FEATURES,
    policies: tuple[str, ...] = opt(
        (),
        "A policy, or any ranker of the lab; `today` is the one in use. Repeat it for several; "
        "default: today and auto.",
        "--policy POLICY",
    ),
    begin: Literal["today", "start"] = opt(
        "today",
        "Begin with today's evidence, or with none at the start of the log.",
        "--from WHEN",
    ),
    worlds: int = opt(32, "Worlds to draw.", "N", type=click.IntRange(min=2)),
    lists: int | None = opt(
        None, "Lists to serve; default: as many as the log has.", "N", type=click.IntRange(min=20)
    ),
    length: int | None = opt(
        None, "Items in a list; default: as in the log.", "N", type=click.IntRange(min=1)
    ),
    seed: int = opt(0, "Seed of all draws.", "N"),
    out: str | None = opt(None, "Folder for a page to read, with its table and figure.", "FOLDER"),
    as_json: bool = AS_JSON,
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
        ebrank whatif backups/monday.db --policy auto --json
    """
    from ebrank.addons.logs import read_evidence
    from ebrank.addons.whatif import History
    from ebrank.addons.whatif import forecast as made
    from ebrank.addons.whatif.history import history_of

    def of_evidence(settings: Settings) -> History:
        evidence = read_evidence(path, features=features, missing="drop")
        if evidence.dropped:
            console.note(f"{evidence.dropped:,} items have no features in {features}: left out")
        return History.of_evidence(evidence, path, settings.examination.examination())

    async def of_store(store: Store, settings: Settings) -> History:
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
        from ebrank.paper.report.whatif import sentences, table

        console.print_table(table(forecast))
        for sentence in sentences(forecast):
            click.echo(console.wrapped(sentence))
    for note in forecast.notes:
        console.note(note)
    if out is not None:
        from ebrank.paper.report.whatif import write

        click.echo(f"Page: {write(forecast, Path(out))}", err=True)


async def watched_store(
    path: str,
    config: str | None,
    features: str | None,
    work: Callable[[Store, Settings], Awaitable[T]],
    of_evidence: Callable[[Settings], T] | None = None,
) -> T:
    """Return what some work learns from a store, a backup or evidence.

    Evidence becomes a store in memory, unless there is a shorter way.
    """
    from ebrank.addons.logs.evidence_file import is_evidence
    from ebrank.addons.logs.importing import in_memory
    from ebrank.service.ops import configuration
    from ebrank.service.store import open

    settings = configuration.read(config, environment=os.environ, flags={})
    if is_evidence(path):
        if of_evidence is not None:
            return of_evidence(settings)
        return await work(*await in_memory(path, features, settings))
    if features is not None:
        raise click.UsageError("--features works only with evidence: a store has its own features.")
    async with open(path, "browse") as store:
        return await work(store, settings)
