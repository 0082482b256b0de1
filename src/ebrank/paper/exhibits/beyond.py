"""Beyond the paper: `auto`, with nothing to tune, against EBRank and other rankers in use.

All others except untuned EBRank are tuned for each world in all their parameters, on validation
queries whose labels are known, which is more than a shop can do. The worlds are those that a ranker
may meet: users as configured, a wrong idea of how far down they look, few clicks, items that are
either relevant or not, users who go through a list in another way, and items that enter fast or
slowly. Each has two claims: untuned `auto` is level with whichever rival is best there on test
queries, in Cum-NDCG and in Run-NDCG.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.result import Result
from ebrank.lab.simulation.users import parse
from ebrank.paper.exhibits.entering import ETAS
from ebrank.paper.framework import measures
from ebrank.paper.framework.display import (
    Cell,
    Column,
    Display,
    Figure,
    Finding,
    Panel,
    Row,
    Series,
    Table,
)
from ebrank.paper.framework.entrants import (
    AUTO,
    BOTH,
    CONTENDERS,
    EXPOSURE_BOTH,
    EXPOSURE_UNTUNED,
    HYBRID,
    THOMPSON,
    TOPRANK,
    TUNING,
    UCBRANK,
    UNTUNED,
    UPPER,
    Entrant,
    entrant_of,
)
from ebrank.paper.framework.exhibit import Exhibit, NamedResults, NamedRuns, Run, Setup
from ebrank.paper.framework.measures import CUM, MEASURES, RUN, Measure
from ebrank.paper.framework.numbers import p_text
from ebrank.paper.framework.significance import Contrast, pairwise
from ebrank.parameters import typed
from ebrank.typing import Floats

ByKey: TypeAlias = dict[str, Result]

USUAL = "users as configured"
FLAT, STEEP = "assumed curve too flat", "assumed curve too steep"
RARE = "click rates × 0.15"
BINARY = "binary labels"
USERS = {f"{name} users": name for name in ("cascade", "dcm", "dbn")}
SEVERITIES = {FLAT: 0.5, STEEP: 2.0}
"""Factors of the users' own severity."""
RATE = 0.15

FAR_BELOW = (TOPRANK, THOMPSON)
"""Rankers left out of a figure because their scores would squeeze all others together."""
FEW_PAIRS = 8_000_000
"""Up to this many pairs of items, 64 MB, TopRank takes part."""
FEW_DRAWS = 1000
"""Up to this many candidates of a query, on average, Thompson sampling takes part: every list takes
a draw for each candidate, and on 5,000 of them a trial takes minutes."""
LEVEL_WITH = {CUM: 0.5, RUN: 0.003}
"""How far `auto` may be behind and still count as level."""

TITLE = "Beyond the paper: EBRank auto"
AHEAD, BEHIND = "*", "▾"
TUNED_OR_NOT = (
    "EBRank auto has nothing to tune; untuned EBRank is left at its defaults; all others are tuned "
    "on validation queries in all their parameters, for each world separately."
)
WRONG_CURVE = (
    "Too flat, too steep: rankers debias clicks by half or twice the severity of the users' curve. "
    "Binary labels: every label above 0 is 1."
)
MARKS = (
    f"bold is the best of a world. {AHEAD} : EBRank auto is significantly better than the best "
    f"tuned ranker of that world, {BEHIND} : significantly worse (Fisher's randomization test over "
    "test queries, p < .05, Holm-adjusted over the worlds). chosen: what tuning chose there."
)
THEME = "EBRank auto, untuned, is level with the best of its tuned rivals"
SYMBOLS = {
    "beta": "β",
    "epsilon": "ε",
    "alpha": "α",
    "ridge": "λ",
    "item_ridge": "λ'",
    "delta": "δ",
}
SIGNS = {"confirmed": AHEAD, "contradicted": BEHIND}
"""What marks a gain, by its verdict."""


def worlds(config: SimulationConfig) -> dict[str, SimulationConfig]:
    """Return the conditions that rankers meet, by label; the first is the one configured."""
    curve = config.users.examination
    configs = {USUAL: config}
    for label, factor in SEVERITIES.items():
        assumed = replace(curve, curve=None, severity=factor * curve.severity)
        configs[label] = replace(config, assumed=assumed)
    configs[RARE] = replace(config, click_rate=RATE * config.click_rate)
    if config.labels != "binary":
        configs[BINARY] = replace(config, labels="binary")
    for label, name in USERS.items():
        users = parse(name if curve.cutoff is None else f"{name}:cutoff={curve.cutoff}")
        configs[label] = replace(config, users=users)
    for eta in ETAS:
        if eta != config.entering_probability:
            configs[f"η = {eta:g}"] = replace(config, entering_probability=eta)
    return configs


def entrants(data: Dataset) -> list[Entrant]:
    """Return the rankers that take part; TopRank and Thompson only where candidates are few."""
    first = [AUTO, EXPOSURE_BOTH, BOTH, EXPOSURE_UNTUNED, UNTUNED, UCBRANK]
    keys = dict.fromkeys([*first, *(entrant.key for entrant in CONTENDERS)])
    if int((data.candidates * (data.candidates - 1) // 2).sum()) > FEW_PAIRS:
        del keys[TOPRANK]
    if data.candidates.mean() > FEW_DRAWS:
        del keys[THOMPSON]
    return [entrant_of(key) for key in keys]


def runs(setup: Setup) -> NamedRuns:
    """Return every ranker in every world; labels that stand for R itself cannot be binary."""
    everyone = entrants(setup.dataset)
    return {
        (label, entrant.key): setup.run(entrant.key, config)
        for label, config in worlds(setup.config).items()
        if label != BINARY or setup.dataset.relevance is None
        for entrant in everyone
    }


def display(setup: Setup, results: NamedResults) -> Display:
    """Return the table, two figures, and whether `auto` does what it must."""
    by_world: dict[str, ByKey] = {}
    chosen: dict[str, dict[str, str]] = {}
    for (label, key), run in runs(setup).items():
        by_world.setdefault(label, {})[key] = results[label, key]
        chosen.setdefault(label, {})[key] = _chosen(key, run)
    note = given(setup)
    shown = table(setup.config, by_world, chosen)
    drawn = (gains(setup, by_world), over_eta(setup, by_world))
    return Display(
        tables=(replace(shown, caption=shown.caption + note),),
        figures=tuple(replace(figure, caption=figure.caption + note) for figure in drawn),
        findings=tuple(
            replace(finding, detail=finding.detail + ("; some rivals were given" if note else ""))
            for finding in findings(by_world)
        ),
    )


def _chosen(key: str, run: Run) -> str:
    """Return the values of an entrant's tuned parameters; "" if it has none."""
    values = {name: run.ranker.value(name) for name in TUNING.get(key, ())}
    return ", ".join(
        f"{SYMBOLS.get(name, name)} = {typed(value)}" for name, value in values.items()
    )


def given(setup: Setup) -> str:
    """Return a sentence about rankers with a given value instead of tuning; "" if none."""
    rankers = dict.fromkeys(record.ranker for record in setup.tuning if record.seed is None)
    return f" Not tuned but given, in all worlds: {'; '.join(rankers)}." if rankers else ""


# --- table ---------------------------------------------------------------------------------------


def table(
    config: SimulationConfig,
    by_world: dict[str, ByKey],
    chosen: Mapping[str, Mapping[str, str]],
) -> Table:
    """Return every ranker's figures, world by world, and what was chosen for it there."""
    marks = [_marks(by_world, measure) for measure in MEASURES]
    rows = []
    for world, results in by_world.items():
        for key, result in results.items():
            own = [by_measure[world] if key == AUTO else "" for by_measure in marks]
            cells: tuple[Cell | str, ...] = (
                entrant_of(key).label,
                *measures.compared_cells(result, results.values(), own),
                *measures.label_cells(result),
                chosen[world][key],
            )
            rows.append(Row(cells, group=world, focus=key == AUTO))
    titles = (*measures.BY_LABELS.values(), "chosen")
    spread = measures.mean_of(list(by_world[USUAL].values()))
    ndcg = measures.ndcg_at(config.cutoffs[0], config.list_length)
    caption = (
        f"{TUNED_OR_NOT} {WRONG_CURVE} {ndcg} on test queries, {spread}; {MARKS} "
        f"{measures.LABELS_CAPTION}"
    )
    columns = (Column("ranker"), *measures.COLUMNS, *map(Column, titles))
    return Table("beyond", TITLE, caption, columns, tuple(rows))


def _marks(by_world: dict[str, ByKey], measure: Measure) -> dict[str, str]:
    """Return what sets auto apart from the best rival of each world."""
    gains = _gains(by_world, measure)
    return {world: SIGNS.get(gain.verdict, "") for world, gain in gains.items()}


def _gains(
    by_world: dict[str, ByKey], measure: Measure, border: float = 0.0
) -> dict[str, Contrast]:
    """Return auto's gain over the best rival of each world, adjusted over the worlds."""
    pairs = {
        world: (results[AUTO], results[_best_rival(results, measure)])
        for world, results in by_world.items()
    }
    return pairwise(pairs, measure, border)


def _best_rival(results: ByKey, measure: Measure) -> str:
    """Return the tuned ranker that does best on test queries."""
    rivals = [key for key in results if key in TUNING]
    return max(rivals, key=lambda key: measure.mean(results[key]))


# --- figures -------------------------------------------------------------------------------------


def gains(setup: Setup, by_world: dict[str, ByKey]) -> Figure:
    """Return how far some rankers are ahead of EBRank (exposure), tuned, in each world."""
    shown = (AUTO, EXPOSURE_UNTUNED, UPPER, HYBRID, UCBRANK)
    rivals = [entrant_of(key) for key in shown]
    labels = tuple(label for label in by_world if not label.startswith("η"))

    def ahead(measure: Measure, results: ByKey, key: str) -> Floats:
        return measure.values(results[key]) - measure.values(results[EXPOSURE_BOTH])

    def bars(measure: Measure, entrant: Entrant) -> Series:
        values = [ahead(measure, by_world[label], entrant.key) for label in labels]
        return measures.series(entrant.label, entrant.style, labels, np.array(values).T)

    return Figure(
        "beyond",
        TITLE,
        "Gain over EBRank (exposure), whose β and ε are tuned for each world: 0 is level with it. "
        f"{TUNED_OR_NOT} {WRONG_CURVE} {measures.averaged(setup.trials)}.",
        tuple(
            Panel(
                f"Gain in {measure.title}",
                "",
                "above EBRank (exposure), tuned",
                tuple(bars(measure, entrant) for entrant in rivals),
                kind="bars",
            )
            for measure in (CUM, RUN)
        ),
    )


def over_eta(setup: Setup, by_world: dict[str, ByKey]) -> Figure:
    """Return Cum- and Run-NDCG against η for all rankers that come near EBRank."""
    usual = setup.config.entering_probability
    labels = {eta: USUAL if eta == usual else f"η = {eta:g}" for eta in ETAS}
    lines = {
        entrant_of(key): {eta: by_world[label][key] for eta, label in labels.items()}
        for key in by_world[USUAL]
        if key not in FAR_BELOW
    }
    below = [entrant_of(key).label for key in FAR_BELOW if key in by_world[USUAL]]
    left_out = f" {' and '.join(below)}, far below, in the table only." if below else ""
    return Figure(
        "beyond-entering",
        "EBRank auto and others by entering probability",
        "The lower η, the more sessions there are before the next item enters. "
        f"{measures.averaged(setup.trials)}; all but EBRank auto and untuned EBRank are tuned "
        f"for each η.{left_out}",
        measures.panels_against("entering probability η", lines, (CUM, RUN)),
    )


# --- findings ------------------------------------------------------------------------------------


def findings(by_world: dict[str, ByKey]) -> Iterator[Finding]:
    """Yield whether `auto` is level with the best rival of each world, or ahead."""
    for measure, margin in LEVEL_WITH.items():
        for world, gain in _gains(by_world, measure, -margin).items():
            results = by_world[world]
            rival = _best_rival(results, measure)
            yield gain.finding(
                f"auto-level-{measure.name}-{world.replace(' ', '-')}",
                f"EBRank auto is at most {measure.text(margin)} below the best tuned ranker in "
                f"{measure.title}: {world}",
                measure,
                THEME,
                f"{measure.title}, {world}",
                f"against {entrant_of(rival).label}, adjusted {p_text(gain.p_value)}"
                + _by_fold(results[AUTO], results[rival], measure),
                ours=True,
            )


def _by_fold(auto: Result, rival: Result, measure: Measure) -> str:
    """Return auto's gain in each fold, if folds are pooled: each has its own training queries."""
    if not auto.by_fold:
        return ""
    each = auto.by_fold[measure.metric] - rival.by_fold[measure.metric]
    return "; by fold " + ", ".join(measure.text(own, signed=True) for own in each.tolist())


EXHIBIT = Exhibit("beyond", display, runs, on_request=True)
