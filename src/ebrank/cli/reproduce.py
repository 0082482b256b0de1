"""`ebrank reproduce` and `report`: every table and figure of the paper with one command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console, lab
from ebrank.cli.lab_options import DATASET, RANKER, as_typed, config_of, simulation_options
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import SHARED, arg, opt, verb
from ebrank.environment.extras import import_extra
from ebrank.errors import DataError

if TYPE_CHECKING:
    from ebrank.addons.cluster.cluster import Cluster
    from ebrank.lab.data.dataset import Dataset
    from ebrank.lab.simulation.parallel import TrialPool
    from ebrank.paper.document import Document
    from ebrank.paper.framework.runner import ReproductionPlan

EMBEDDED = "mq2007-like"
TRIALS = "trials"
NOT_IN_RESULTS = {"jobs", "cluster", "out", "as_json"}
"""Options that the results do not depend on."""
ANY_FOLDER = "FOLDER"
"""Stands for the folder of published data, which differs from reader to reader."""


@verb(
    simulation_options(
        without=["eta"],  # which the experiments vary
        dataset=opt(EMBEDDED, f"{DATASET}.", "NAME|FOLDER"),
        out="Folder for results and finished trials, by default reproduction/DATASET.",
    )
)
def reproduce(
    dataset: str = SHARED,
    out: str | None = SHARED,
    only: str | None = opt(
        None,
        "Some of table1, table2, table3, time, entering, ablation, toy, waiting; by default all of "
        "these. beyond (auto against EBRank and others), shared (a shop whose queries share items) "
        "and opinions (auto with features that are opinions) run only if you name them, or all.",
        "NAMES",
    ),
    given: tuple[str, ...] = opt(
        (),
        "A ranker with the ε to use, such as ebrank:epsilon=30; without this, ε is tuned on "
        "validation queries.",
        RANKER,
    ),
    also: tuple[str, ...] = opt(
        (), "Your own ranker, or another one from `ebrank rankers`, to add to Table 2.", RANKER
    ),
    tune: tuple[str, ...] = opt(
        (),
        "The same, but first tune all its parameters that have a grid on validation queries.",
        RANKER,
    ),
    as_json: bool = AS_JSON,
    **options: Any,  # noqa: ANN401
) -> None:
    """Reproduce the paper: all its tables and figures, and more.

    Chooses ε on validation queries, runs all rankers, and writes report.html, results.json, tables,
    figures and LEDGER.md, which compares the results with the paper's.

    --fold all chooses ε in each fold, on its own validation queries, and pools the test queries of
    all folds in every table, figure and test. The toy example has no folds.

    Ctrl-C stops; the same command continues where it stopped.

    Examples:
        ebrank reproduce
        ebrank reproduce --dataset MQ2008 --trials 5 --out mq2008
        ebrank reproduce --only table2,time --scale 0.1 --trials 2
        ebrank reproduce --only table2,ablation --given ebrank:epsilon=30
        ebrank reproduce --only table2 --also smoothedctr --tune mymodule:MyRanker
        ebrank reproduce --only beyond --scale 0.1 --trials 2
        ebrank reproduce --only shared --dataset shop-like --trials 4
        ebrank reproduce --dataset MQ2007 --data-dir ~/datasets
        ebrank reproduce --dataset MSLR-30K --cluster dask://node1:8786
        ebrank reproduce --dataset MQ2008 --fold all
    """
    lab.begin(dataset)
    for module in ("matplotlib", "jinja2"):  # fail now rather than after the runs
        import_extra(module, extra="report", purpose="for the report")
    plan = make_plan(only, given, also, tune, options)
    jobs, address = options.pop("jobs"), options.pop("cluster")
    with lab.note_of_compilation():
        loaded = lab.load(dataset, plan.config, options)
        folder = prepared_folder(out, loaded)
        try:
            with lab.connected(address) as cluster:
                document = run(plan, loaded, folder, jobs, cluster)
        except KeyboardInterrupt:
            kept = f"finished trials are kept in {folder / TRIALS}"
            click.echo(f"stopped; {kept}; run the same command to continue", err=True)
            raise click.exceptions.Exit(130) from None
    if as_json:
        console.print_json(as_plain(document, folder))
    else:
        print_summary(document, folder)


def make_plan(
    only: str | None,
    given: tuple[str, ...],
    also: tuple[str, ...],
    tune: tuple[str, ...],
    options: dict[str, Any],
) -> ReproductionPlan:
    """Return the plan; remove the options that it takes."""
    from ebrank.lab.rankers import registry
    from ebrank.paper import exhibits
    from ebrank.paper.framework import tuning
    from ebrank.paper.framework.runner import ReproductionPlan

    for text in also:
        registry.parse(text)  # raises if there is no such ranker
    for text in tune:
        tuning.grid_of(text)  # raises if it has nothing to tune
    return ReproductionPlan(
        exhibits.selected(only),
        config_of(options),
        options.pop("seed"),
        options.pop("trials"),
        tuning.read_given(given),
        tuple(dict.fromkeys(also)),
        tuple(dict.fromkeys(tune)),
    )


def prepared_folder(out: str | None, loaded: lab.Loaded) -> Path:
    """Return the folder for the results; raise if it holds something else."""
    from ebrank.lab.simulation.storage import read_own
    from ebrank.paper.document import KIND, RESULTS

    name = re.sub(r"[^\w.-]+", "-", loaded.folder_name)
    folder = Path("reproduction", name) if out is None else Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    others = [path for path in folder.iterdir() if path.name != TRIALS]
    if not read_own(folder / RESULTS, KIND) and others:
        raise DataError(
            "the folder holds something else", path=folder, remedy="Choose another --out."
        )
    return folder


def run(
    plan: ReproductionPlan,
    loaded: lab.Loaded,
    folder: Path,
    jobs: int | None,
    cluster: Cluster | None,
) -> Document:
    """Run the plan, write the results and the report, return the results."""
    from ebrank.kernels.threads import available_threads
    from ebrank.paper.document import document, write_document
    from ebrank.paper.framework.runner import run_folds
    from ebrank.paper.report.page import write_report

    def opened(place: int) -> tuple[Dataset, TrialPool | None]:
        data = loaded.opened(place)
        return data, None if cluster is None else cluster.workers(data, loaded.locators[place])

    jobs = jobs or available_threads() if cluster is None else cluster.slots
    with console.progress("starting") as progress:
        finished = run_folds(plan, loaded.folds, opened, folder / TRIALS, jobs=jobs, watch=progress)
        made = document(recorded_command(), recorded_command("only"), plan, finished)
        write_document(made, folder)
        write_report(made, folder)
    return made


def recorded_command(*but: str) -> str:
    """Return the command with the options that its results depend on, but for some."""
    options = as_typed({*NOT_IN_RESULTS, *but}, data_dir=ANY_FOLDER)
    return f"ebrank reproduce {options}".rstrip()


def as_plain(document: Document, folder: Path) -> dict[str, Any]:
    """Return what scripts want to know; all of it is in results.json."""
    parts = ("name", "tuning", "runs", "findings")
    return {"out": str(folder), **{part: getattr(document, part) for part in parts}}


def print_summary(document: Document, folder: Path) -> None:
    """Print Table 2, the findings by theme, the result in a few words, and where the report is."""
    if "table2" in document.displays:
        console.print_table(document.displays["table2"].tables[0])
    if document.findings:
        print_findings(document)
    if document.headline:
        click.secho(f"\n{console.wrapped(document.headline)}.", bold=True)
    click.echo(f"Report: {folder / 'report.html'}")


def print_findings(document: Document) -> None:
    """Print how many findings are confirmed, theme by theme, and which ones are not."""
    from ebrank.paper.framework.display import VERDICTS
    from ebrank.paper.framework.significance import caution
    from ebrank.paper.report.ledger import tally, themes

    click.echo(f"{document.name}: {tally(document.findings)}")
    careful = caution(document.test_queries, document.trials)
    if careful:
        click.echo(console.wrapped(careful))
    for theme in themes(document.findings):
        line = f"  {theme.title}: {tally(theme.findings)}"
        click.echo(console.wrapped(line, indent=" " * 4))
        for verdict in VERDICTS[1:]:
            subjects = theme.subjects(verdict)
            if subjects and len(subjects) < len(theme.findings):
                line = f"    {verdict}: {'; '.join(subjects)}"
                click.echo(console.wrapped(line, indent=" " * 6))


# --- ebrank report -------------------------------------------------------------------------------


@verb()
def report(
    folder: str = arg("DIR", type=click.Path(file_okay=False)), as_json: bool = AS_JSON
) -> None:
    """Rewrite the report of a reproduction from its results.

    DIR is a folder that `ebrank reproduce` wrote. This makes report.html, the tables, the figures
    and LEDGER.md from its results.json, without running anything.

    Examples:
        ebrank report reproduction/mq2007-like
        ebrank report mq2008 --json
    """
    from ebrank.paper.document import read_document
    from ebrank.paper.report.page import write_report

    written = write_report(read_document(Path(folder)), Path(folder))
    tables, figures = (
        len({path.stem for path in written if path.parent.name == kind})
        for kind in ("tables", "figures")
    )
    line = f"{written[0]}: {tables} tables and {figures} figures, each also in its own file"
    console.answer(as_json, {"files": list(map(str, written))}, line)
