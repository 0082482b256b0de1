"""`ebrank experiment`: start, ramp, stop and read experiments, in a store or through its server."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from ebrank.cli import console
from ebrank.cli.options import AS_JSON, STORE, TOKEN
from ebrank.cli.verbs import arg, opt, verb, verbs
from ebrank.environment.files import write_whole
from ebrank.errors import ParameterError

if TYPE_CHECKING:
    from ebrank.cli.stores import Opening, StoreItself
    from ebrank.client import AsyncClient
    from ebrank.service import api


def pairs(given: tuple[str, ...], what: str) -> dict[str, str]:
    """Return arms and what is said about them, written as `ARM=VALUE`."""
    values = dict[str, str]()
    for text in given:
        arm, _, value = text.partition("=")
        if not value:
            raise ParameterError(f"{text!r}: write {what}")
        values[arm] = value
    return values


def shares_of(given: tuple[str, ...]) -> dict[str, float] | None:
    """Return the shares of arms, None if there are none."""
    try:
        shares = {arm: float(share) for arm, share in pairs(given, "ARM=SHARE").items()}
    except ValueError as problem:
        raise ParameterError(f"{problem}: write a share as 0.5") from None
    return shares or None


def report(
    store: str,
    token: str | None,
    as_json: bool,
    work: Callable[[AsyncClient | StoreItself], Awaitable[api.ExperimentOut]],
    opening: Opening = "serve",
) -> None:
    """Change an experiment if asked to, and print its readout."""
    from ebrank.cli.stores import answer

    shown = answer(store, token, work, opening)
    if as_json:
        console.print_json(shown)
        return
    since = time.strftime("%Y-%m-%d %H:%M", time.localtime(shown.since))
    click.echo(f"{shown.name}: {shown.state}, arms per {shown.unit}, compared since {since}")
    click.echo("; ".join(f"{arm.name} is {arm.policy}" for arm in shown.arms))
    head = ("arm", "share", "units", "lists", "", "per list", f"− {shown.arms[0].name}")
    console.print_rows(head, [row for arm in shown.arms for row in table_rows(arm)])
    click.echo("Figures are per list, with 95 % intervals that you may look at every day.")
    for note in shown.notes:
        console.note(note)


def table_rows(arm: api.ArmOut) -> Iterator[Sequence[str]]:
    """Yield a row for each metric of an arm."""
    about: Sequence[str] = (arm.name, f"{arm.share:.0%}", f"{arm.units:,}", f"{arm.lists:,}")
    for name in ("clicks", "outcome", "found"):
        compared = figure(arm.difference[name], sign="+") if arm.difference else ""
        yield *about, name, figure(getattr(arm, name)), compared
        about = ("",) * 4


def figure(metric: api.MetricOut, sign: str = "") -> str:
    """Return an estimate with its interval, as far as they are known."""
    if metric.value is None:
        return "–"
    if metric.low is None or metric.high is None:
        return f"{metric.value:{sign}.3f}"
    return f"{metric.value:{sign}.3f} [{metric.low:{sign}.3f}, {metric.high:{sign}.3f}]"


@verb()
def start(
    store: str = STORE,
    name: str = arg(""),
    arm: tuple[str, ...] = opt(
        (),
        "A policy, or own: the caller's own order; the first is the control.",
        "ARM=POLICY",
    ),
    share: tuple[str, ...] = opt(
        (), "Share of the traffic; by default, all of it in equal parts.", "ARM=SHARE"
    ),
    unit: Literal["query", "user"] = opt("query", "What is assigned to arms."),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """Start an experiment.

    If a server is running, give its URL, or the URL of its database, instead of STORE. Servers
    follow within seconds. docs/how-to/experiments.md says when to choose which unit.

    Examples:
        ebrank experiment start URL holdout --arm control=own --arm new=auto
        ebrank experiment start STORE look --arm own=own
        ebrank experiment start STORE bonus --arm a=auto --arm b=auto:bonus=none
    """
    from ebrank.service import api

    arms = pairs(arm, "--arm ARM=POLICY")
    request = api.StartExperimentRequest(name, arms, shares_of(share), unit)
    report(store, token, as_json, lambda there: there.start_experiment(request))


@verb()
def ramp(
    store: str = STORE,
    name: str = arg(""),
    share: tuple[str, ...] = opt((), "Share of the traffic.", "ARM=SHARE"),
    arm: tuple[str, ...] = opt(
        (), "Another policy of an arm: the readout begins anew.", "ARM=POLICY"
    ),
    token: str | None = TOKEN,
    as_json: bool = AS_JSON,
) -> None:
    """Change the shares of a running experiment.

    Queries or users stay in their arms as far as the shares allow. The readout continues if all
    shares change in proportion, such as from 10 % each to 50 % each; otherwise it begins anew.

    Examples:
        ebrank experiment ramp URL bonus --share a=0.5 --share b=0.5
        ebrank experiment ramp STORE bonus --arm a=auto --arm b=ebrank:epsilon=5
    """
    from ebrank.service import api

    request = api.ChangeExperimentRequest(shares_of(share), pairs(arm, "--arm ARM=POLICY") or None)
    report(store, token, as_json, lambda there: there.change_experiment(name, request))


@verb()
def stop(
    store: str = STORE, name: str = arg(""), token: str | None = TOKEN, as_json: bool = AS_JSON
) -> None:
    """Stop an experiment.

    Its readout stays. Events that arrive later no longer count for it.

    Examples:
        ebrank experiment stop http://127.0.0.1:8000 bonus
        ebrank experiment stop ebrank-store bonus --json
    """
    report(store, token, as_json, lambda there: there.stop_experiment(name))


@verb()
def show(
    store: str = STORE, name: str = arg(""), token: str | None = TOKEN, as_json: bool = AS_JSON
) -> None:
    """Show what an experiment has found so far.

    You may look as often as you like, and stop when you are sure.

    Examples:
        ebrank experiment show http://127.0.0.1:8000 bonus
        ebrank experiment show ebrank-store bonus --json
    """
    report(store, token, as_json, lambda there: there.experiment(name), "read")


@verb()
def rows(
    store: str,
    name: str,
    file: Path = arg("", type=click.Path(dir_okay=False, path_type=Path)),
    as_json: bool = AS_JSON,
) -> None:
    """Write the lists of an experiment as CSV that GrowthBook can read.

    One row per list that is still in the log and that the readout compares, with the names of
    GrowthBook's exposures and its clicks. STORE may be in use.

    Examples:
        ebrank experiment rows ebrank-store bonus exposures.csv
        ebrank experiment rows ebrank-store bonus exposures.csv --json
    """
    from ebrank.addons.exposures import Exposure, exposures
    from ebrank.cli.upkeep import looked_after

    found = looked_after(store, "read", "reading", lambda opened, _: exposures(opened, name))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(Exposure._fields)
    writer.writerows(found)
    write_whole(file, text.getvalue().encode(), private=True)
    console.answer(
        as_json, {"file": str(file), "rows": len(found)}, f"{file}: {len(found):,} lists"
    )


@verbs(start, ramp, stop, show, rows)
def experiment() -> None:
    """Compare policies on live traffic.

    Examples:
        ebrank experiment start URL bonus --arm a=auto --arm b=auto:bonus=none
        ebrank experiment show http://127.0.0.1:8000 bonus
    """
