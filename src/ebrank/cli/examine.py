"""`ebrank examine`: how far down users look."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ebrank.cli import console
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.errors import ParameterError

if TYPE_CHECKING:
    from ebrank.service.ops.examine import ExaminedCurve, ExaminedRank

BAR = 24


@click.command(
    "examine",
    epilog=examples(
        "ebrank examine ebrank-store",
        "ebrank examine exports/2026-11 --plot curve.svg",
        "ebrank examine evidence.parquet --features items.parquet",
        "ebrank examine ebrank-store --config ebrank.toml --json",
    ),
)
@click.argument("path", metavar="STORE|EXPORT|EVIDENCE")
@click.option("--config", metavar="FILE", help="Settings of the service, in TOML.")
@click.option("--features", metavar="FILE", help="Features of items, for evidence.")
@click.option("--plot", metavar="FILE", help="Plot the curve to an .svg or .png file.")
@json_option
def command(
    path: str, config: str | None, features: str | None, plot: str | None, as_json: bool
) -> None:
    """Estimate how far down users look.

    Items shown at several ranks reveal how likely users are to look at each rank, relative to the
    first. The support of a rank is its impressions, those of each item times the share of its
    impressions at other ranks. Where the support is too small or the error too large, the
    configured curve applies; everywhere, if fewer than 100 query-item pairs were shown. The store
    may be in use; a backup, an export or the output of `ebrank aggregate` works too.
    """
    from ebrank.priors.fitting import FEWEST_ROWS

    if plot is not None and Path(plot).suffix not in (".svg", ".png"):
        raise click.UsageError(f"--plot writes .svg and .png files, not {plot!r}.")
    curve = asyncio.run(examined(path, config, features))
    if plot is not None:
        draw(curve.ranks, Path(plot))
    if as_json:
        console.print_json({"path": path} | asdict(curve))
    else:
        print_ranks(curve.ranks)
    if curve.pairs < FEWEST_ROWS:
        console.note(
            f"the configured curve applies: {curve.pairs} query-item pairs were shown, too few to "
            f"learn from; it takes {FEWEST_ROWS}"
        )


async def examined(path: str, config: str | None, features: str | None = None) -> ExaminedCurve:
    """Return what a store, a backup, an export or evidence reveals."""
    from ebrank.logs.evidence_file import is_evidence
    from ebrank.service.ops import configuration, examine
    from ebrank.service.ops.transfer.exported import Exported
    from ebrank.service.ops.transfer.tables import is_export
    from ebrank.service.store import open

    settings = configuration.read(config, environment=os.environ, flags={})
    if is_evidence(path):
        return await examine.examined_evidence(path, features, settings)
    if features is not None:
        raise click.UsageError("--features works only with evidence: a store has its own features.")
    if is_export(path):
        return await examine.examined(Exported(path), settings)
    async with open(path, "browse") as store:
        return await examine.examined(store, settings)


def print_ranks(ranks: Sequence[ExaminedRank]) -> None:
    """Print a row for each rank, with a bar for the probability that users look at it."""
    rows = [
        (
            name_of(rank),
            f"{rank.probability:.3f}",
            f"± {rank.error:.3f}" if rank.learned else "configured",
            f"{rank.configured:.3f}",
            round(rank.support),
            "█" * round(BAR * rank.probability),
        )
        for rank in ranks
    ]
    console.print_table(("rank", "looked at", "error", "configured", "support", ""), rows)


def draw(ranks: Sequence[ExaminedRank], path: Path) -> None:
    """Draw the learned curve with its errors beside the configured one."""
    from ebrank.environment.files import write_whole
    from ebrank.experiments.framework.figures import Figure, Panel, Series
    from ebrank.report.figures.render import png_file, svg_file

    x = tuple(float(rank.first) for rank in ranks)
    learned = Series(
        "learned",
        "ebrank",
        x,
        tuple(rank.probability for rank in ranks),
        tuple(rank.error or 0.0 if rank.learned else 0.0 for rank in ranks),
    )
    configured = Series("configured", "bm25", x, tuple(rank.configured for rank in ranks))
    panel = Panel("", "rank", "probability", (learned, configured), zero=True)
    caption = "How likely users are to look at a rank; bands are one standard error."
    figure = Figure("examination", "How far down users look", caption, (panel,))
    try:
        write_whole(path, png_file(figure) if path.suffix == ".png" else svg_file(figure))
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be written: {problem.strerror}") from None


def name_of(rank: ExaminedRank) -> str:
    """Return the label of a row."""
    return str(rank.first) if rank.first == rank.last else f"{rank.first} to {rank.last}"
