"""`ebrank compare`: rankers side by side, run now or before, and who differs beyond luck."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli._experiment import (
    OPTIONS,
    RANKER,
    broken,
    experiment,
    note_of_compilation,
    one_interrupt_at_a_time,
    say_stopped,
)
from ebrank.cli._stored import NOW, Entry, Meeting, check_same, meeting_of, read_folder
from ebrank.cli.lazy import examples
from ebrank.cli.options import json_option
from ebrank.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from ebrank.experiments.comparison import Comparison
    from ebrank.rankers.base import Ranker
    from ebrank.simulation.result import Result

PICTURE = "compare"
OTHER_COLUMNS = 52
"""Characters of the table that are not the ranker's."""


@click.command(
    "compare",
    epilog=examples(
        "ebrank compare bm25 ebrank ebrank:beta=2 --dataset mq2007-like --scale 0.1",
        "ebrank compare ebrank mymodule:MyRanker --dataset MQ2008 --out mine",
        "ebrank compare run1 run2",
        "ebrank compare run1 ebrank:epsilon=5 --dataset MQ2008 --json",
    ),
)
@click.argument("runs", nargs=-1, required=True, metavar=f"FOLDER|{RANKER}...")
@click.option(
    "--dataset",
    metavar="NAME|FOLDER",
    help="A preset, a published dataset, or a folder with train.txt, vali.txt, test.txt; needed "
    "to run rankers.",
)
@OPTIONS["trials"]
@OPTIONS["seed"]
@OPTIONS["sessions"]
@OPTIONS["eta"]
@OPTIONS["updates"]
@OPTIONS["jobs"]
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Folder for compare.svg and compare.png, and for the trials of the rankers that are run; "
    "those finished there before are not run again.",
)
@OPTIONS["scale"]
@OPTIONS["about data"]
@json_option
def command(runs: tuple[str, ...], as_json: bool, **options: Any) -> None:  # noqa: ANN401
    """Compare rankers, and say which differences are not luck.

    A run is a folder that `ebrank simulate --out` wrote, with all rankers in it, or a ranker, which
    is run on --dataset. All must have met the same users. Those that share a letter do not differ
    significantly. A ranker whose code was changed between two runs is compared with itself, by
    folder.

    Ctrl-C stops; finished trials are kept in --out for the next time.
    """
    from ebrank.experiments.comparison import compared, plain

    with one_interrupt_at_a_time(), note_of_compilation():
        found = compared(results_of(runs, options))
    if as_json:
        console.print_json(plain(found))
    else:
        click.echo(printed(found, shutil.get_terminal_size().columns))
    if options["out"] is not None:
        draw(found, Path(options["out"]))


def printed(found: Comparison, width: int) -> str:
    """Return the table for a terminal, long texts of rankers broken between parameters."""
    from ebrank.experiments.comparison import table
    from ebrank.report.tables.text import text

    told = table(found)
    rows = []
    for row in told.rows:
        ranker = broken(str(row.cells[0]), width - OTHER_COLUMNS)
        rows.append(replace(row, cells=(ranker, *row.cells[1:])))
    return text(replace(told, rows=tuple(rows)), width=width, color=sys.stdout.isatty())


def results_of(runs: Sequence[str], options: dict[str, Any]) -> list[Result]:
    """Return the results of all runs, in their order, each ranker once.

    Rankers of the same text whose code differs are different ones; each is then called by its text
    and where it is from.
    """
    from ebrank.provenance import stamp

    meetings: list[Meeting] = []
    found: dict[tuple[str, str], Entry] = {}
    rankers: dict[tuple[str, str], Ranker] = {}
    words: dict[str, str] = {}
    for run in runs:
        if is_folder(run):
            meeting, stored = read_folder(Path(run))
            meetings.append(meeting)
            for entry in stored:
                known = found.get(entry.identity)
                if known is None or known.result is None:
                    found[entry.identity] = entry
        else:
            ranker = parsed(run)
            entry = Entry(str(ranker), stamp(ranker), NOW)
            rankers[entry.identity] = ranker
            words.setdefault(entry.ranker, run)
            found.setdefault(entry.identity, entry)
    for meeting in meetings[1:]:
        check_same(meetings[0], meeting)
    if len(found) < 2:
        raise ParameterError("a comparison needs two rankers or more")
    new = [identity for identity, entry in found.items() if entry.result is None]
    if new:
        results = run_now([rankers[identity] for identity in new], meetings, options)
        for identity, result in zip(new, results, strict=True):
            found[identity] = replace(found[identity], result=result)
    return called_apart(list(found.values()), words)


def called_apart(entries: Sequence[Entry], words: Mapping[str, str]) -> list[Result]:
    """Return the results, called by the user's words for a ranker's text, where there are any.

    Those of the same text are called by where they are from as well.
    """
    times = Counter(entry.ranker for entry in entries)
    results = []
    for entry in entries:
        if entry.result is not None:
            name = words.get(entry.ranker, entry.ranker)
            where = f" ({entry.where})" if times[entry.ranker] > 1 else ""
            results.append(replace(entry.result, ranker=name + where))
    return results


def is_folder(run: str) -> bool:
    """Return whether a run is a folder; a ranker's name is a ranker even if there is one."""
    from ebrank.rankers import registry

    return run.partition(":")[0] not in registry.known() and Path(run).is_dir()


def parsed(run: str) -> Ranker:
    """Return the ranker that a run names."""
    from ebrank.rankers import registry

    try:
        return registry.parse(run)
    except ParameterError as problem:
        if ":" in run or run in registry.known():
            raise
        raise ParameterError(f"there is no folder {run}, and {problem}") from None


def run_now(
    rankers: Sequence[Ranker], meetings: Sequence[Meeting], options: dict[str, Any]
) -> list[Result]:
    """Run what is not in a folder yet, if it will meet the users that those in folders met."""
    from ebrank.cli.simulate import run
    from ebrank.simulation.parallel import Interrupted

    if options["dataset"] is None:
        names = ", ".join(map(str, rankers))
        raise ParameterError(f"--dataset is needed to run {names}; folders know their own")
    told = experiment(**options)
    for meeting in meetings[:1]:
        check_same(meeting, meeting_of(told))
    try:
        return run(told, rankers)
    except Interrupted as interrupted:
        say_stopped(told, interrupted.results)
        raise click.exceptions.Exit(130) from None


def draw(found: Comparison, folder: Path) -> None:
    """Write the picture, or say what is missing for it; the figures are told in any case."""
    from ebrank.experiments.comparison import figure
    from ebrank.files import write_whole
    from ebrank.report.plots import png_file, svg_file

    picture = figure(found)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for suffix, drawn in ((".svg", svg_file), (".png", png_file)):
            write_whole(folder / f"{PICTURE}{suffix}", drawn(picture))
    except MissingExtraError as problem:
        console.warn(f"no picture: {problem}")
        return
    click.echo(f"Picture: {folder / PICTURE}.svg, .png", err=True)
