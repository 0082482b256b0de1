"""Beyond the paper: `auto`, with nothing to tune, against EBRank and other rankers in use.

All others except untuned EBRank are tuned for each world, on validation queries whose labels are
known, which is more than a shop can do. The worlds are those that a ranker may meet: users as
configured, a wrong idea of how far down they look, few clicks, users who go through a list in
another way, and items that enter fast or slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from ebrank.data.dataset import Dataset
from ebrank.experiments.exhibits.entering import ETAS
from ebrank.experiments.framework.entrants import (
    AUTO,
    CONTENDERS,
    EBRANK,
    EXPOSURE,
    EXPOSURE_UNTUNED,
    TOPRANK,
    UCBRANK,
    UNTUNED,
    Entrant,
    entrant_of,
)
from ebrank.experiments.framework.experiment import Experiment, Results, Run, Setup
from ebrank.experiments.framework.measures import (
    CUM,
    MEASURES,
    RUN,
    Measure,
    against,
    averaged,
    cells,
    ndcg_at,
    panels,
    series,
)
from ebrank.experiments.framework.numbers import p_text
from ebrank.experiments.framework.outcome import (
    VERDICTS,
    Cell,
    Column,
    Figure,
    Finding,
    Outcome,
    Panel,
    Row,
    Series,
    Table,
)
from ebrank.experiments.framework.significance import Contrast, contrasts, pairwise, shares
from ebrank.simulation.config import SimulationConfig
from ebrank.simulation.result import Result
from ebrank.simulation.users import parse

ByKey: TypeAlias = dict[str, Result]

USUAL = "users as configured"
FLAT, STEEP = "believed curve too flat", "believed curve too steep"
RARE = "click rates × 0.15"
USERS = {f"{name} users": name for name in ("cascade", "dcm", "dbn")}
SEVERITIES = {FLAT: 0.5, STEEP: 2.0}
"""Factors of the users' own severity."""
RATE = 0.15

TUNED_EBRANK = (EXPOSURE, EBRANK)
LEFT_ALONE = (EXPOSURE_UNTUNED, UNTUNED)
FAR_BELOW = ("linucb", TOPRANK)
"""Rankers so far off that they would leave the others no room in a figure."""
FEW_PAIRS = 8_000_000
"""Up to this many pairs of items, 64 MB, TopRank takes part."""
LEVEL_WITH = {CUM: 0.5, RUN: 0.003}
"""How far `auto` may be behind and still count as level."""

TITLE = "Beyond the paper: auto"
AHEAD, BEHIND = "*", "▾"
TUNED_OR_NOT = (
    "auto has nothing to tune; untuned EBRank is left at its defaults; all others are tuned on "
    "validation queries, for each world separately."
)
WRONG_CURVE = (
    "Too flat, too steep: rankers debias clicks by half or twice the severity of the users' curve."
)
MARKS = (
    f"bold is the best of a world. {AHEAD} : auto is significantly better than the best of the "
    f"four EBRank in that world, {BEHIND} : significantly worse (Fisher's randomization test over "
    "test queries, p < .05, Holm-adjusted over the worlds)."
)
LEVEL_THEME = "auto, untuned, is level with EBRank tuned"
RARE_THEME = "auto is ahead of untuned EBRank where clicks are rare"
CURVE_THEME = "auto gets over a wrong examination curve"
USERS_THEME = "auto copes with users of another kind"


@dataclass(frozen=True)
class World:
    """Conditions that rankers meet."""

    label: str
    config: SimulationConfig


def worlds(config: SimulationConfig) -> tuple[World, ...]:
    """Return all worlds; the first is the one configured."""
    curve = config.users.examination
    changes: dict[str, Callable[[], SimulationConfig]] = {USUAL: lambda: config}
    for label, factor in SEVERITIES.items():
        believed = replace(curve, curve=None, severity=factor * curve.severity)
        changes[label] = partial(replace, config, believed=believed)
    changes[RARE] = partial(replace, config, click_rate=RATE * config.click_rate)
    for label, name in USERS.items():
        users = parse(name if curve.cutoff is None else f"{name}:cutoff={curve.cutoff}")
        changes[label] = partial(replace, config, users=users)
    for eta in ETAS:
        if eta != config.entering_probability:
            changes[f"η = {eta:g}"] = partial(replace, config, entering_probability=eta)
    return tuple(World(label, change()) for label, change in changes.items())


def entrants(data: Dataset) -> list[Entrant]:
    """Return the rankers that take part; TopRank only where pairs of items are few."""
    first = [AUTO, *TUNED_EBRANK, *LEFT_ALONE, UCBRANK]
    keys = dict.fromkeys([*first, *(entrant.key for entrant in CONTENDERS)])
    if int((data.candidates * (data.candidates - 1) // 2).sum()) > FEW_PAIRS:
        del keys[TOPRANK]
    return [entrant_of(key) for key in keys]


def runs(setup: Setup) -> list[Run]:
    """Return every ranker in every world."""
    everyone = entrants(setup.dataset)
    return [
        setup.run(entrant.key, world.config)
        for world in worlds(setup.config)
        for entrant in everyone
    ]


def outcome(setup: Setup, results: Results) -> Outcome:
    """Return the table, two figures, and whether `auto` does what it must."""
    everyone = entrants(setup.dataset)
    by_world = {
        world.label: {
            entrant.key: results[setup.run(entrant.key, world.config)] for entrant in everyone
        }
        for world in worlds(setup.config)
    }
    shown = table(setup.config, by_world)
    drawn = (gains(setup, by_world), over_eta(setup, results))
    note = given(setup)
    rivals_given = any(
        record.seed is None and record.key in TUNED_EBRANK for record in setup.tuning
    )
    return Outcome(
        tables=(replace(shown, caption=shown.caption + note),),
        figures=tuple(replace(figure, caption=figure.caption + note) for figure in drawn),
        findings=tuple(
            replace(
                finding,
                detail=finding.detail
                + ("; EBRank's ε was given, not tuned" if rivals_given else ""),
            )
            for finding in findings(by_world)
        ),
    )


def given(setup: Setup) -> str:
    """Return a sentence about rankers with a given value instead of tuning; "" if none."""
    rankers = dict.fromkeys(record.ranker for record in setup.tuning if record.seed is None)
    return f" Not tuned but given, in all worlds: {'; '.join(rankers)}." if rankers else ""


# --- table ---------------------------------------------------------------------------------------


def table(config: SimulationConfig, by_world: dict[str, ByKey]) -> Table:
    """Return every ranker's figures, world by world."""
    marks = {measure: _marks(by_world, measure) for measure in MEASURES}
    rows = []
    for world, results in by_world.items():
        best = {measure: max(map(measure.mean, results.values())) for measure in MEASURES}
        for key, result in results.items():
            row: list[Cell | str] = [entrant_of(key).label]
            for measure, own in zip(MEASURES, cells(result), strict=True):
                mark = marks[measure][world] if key == AUTO else ""
                row.append(replace(own, best=own.value == best[measure], marks=mark))
            rows.append(Row(tuple(row), group=world, focus=key == AUTO))
    columns = (Column("ranker"), *(Column(measure.title) for measure in MEASURES))
    caption = (
        f"{TUNED_OR_NOT} {WRONG_CURVE} {ndcg_at(config.cutoffs[0], config.list_length)} on test "
        f"queries, mean of the trials; {MARKS}"
    )
    return Table("beyond", TITLE, caption, columns, tuple(rows))


def _marks(by_world: dict[str, ByKey], measure: Measure) -> dict[str, str]:
    """Return what sets auto apart from the best EBRank of each world."""
    pairs = {
        world: (results[AUTO], results[_best(results, (*TUNED_EBRANK, *LEFT_ALONE), measure)])
        for world, results in by_world.items()
    }
    return {
        world: {"confirmed": AHEAD, "contradicted": BEHIND}.get(gain.verdict, "")
        for world, gain in pairwise(pairs, measure).items()
    }


def _best(results: ByKey, keys: tuple[str, ...], measure: Measure) -> str:
    return max(keys, key=lambda key: measure.mean(results[key]))


# --- figures -------------------------------------------------------------------------------------


def gains(setup: Setup, by_world: dict[str, ByKey]) -> Figure:
    """Return how far some rankers are ahead of EBRank (exposure), tuned, in each world."""
    rivals = [entrant_of(key) for key in (AUTO, EBRANK, *LEFT_ALONE, UCBRANK)]
    labels = tuple(label for label in by_world if not label.startswith("η"))

    def bars(measure: Measure, entrant: Entrant) -> Series:
        values = np.array(
            [
                measure.values(by_world[label][entrant.key])
                - measure.values(by_world[label][EXPOSURE])
                for label in labels
            ]
        )
        return series(entrant.label, entrant.style, labels, values.T)

    return Figure(
        "beyond",
        TITLE,
        "Gain over EBRank (exposure), whose ε is tuned for each world: 0 is level with it. "
        f"{TUNED_OR_NOT} {WRONG_CURVE} {averaged(setup.trials)}.",
        tuple(
            Panel(
                f"Gain in {measure.title}",
                f"Gain in {measure.title}",
                "",
                tuple(bars(measure, entrant) for entrant in rivals),
                kind="bars",
            )
            for measure in (CUM, RUN)
        ),
    )


def over_eta(setup: Setup, results: Results) -> Figure:
    """Return Cum- and Run-NDCG against η for all rankers that come near EBRank."""
    everyone = [entrant.key for entrant in entrants(setup.dataset)]
    keys = [key for key in everyone if key not in FAR_BELOW]
    configs = [replace(setup.config, entering_probability=eta) for eta in ETAS]

    def lines(measure: Measure) -> tuple[Series, ...]:
        return tuple(
            against(
                entrant_of(key), ETAS, [results[setup.run(key, each)] for each in configs], measure
            )
            for key in keys
        )

    drawn = panels("entering probability η", lines, (CUM, RUN))
    return Figure(
        "beyond-entering",
        "auto and others by entering probability",
        "The lower η, the more sessions there are before the next item enters. "
        f"{averaged(setup.trials)}; all but auto and untuned EBRank are tuned for each η. LinUCB "
        "and TopRank, which are far below, are in the table only.",
        tuple(replace(panel, log_x=True) for panel in drawn),
    )


# --- findings ------------------------------------------------------------------------------------


def findings(by_world: dict[str, ByKey]) -> Iterator[Finding]:
    """Yield whether `auto` does what it must."""
    usual = by_world[USUAL]
    for measure, margin in LEVEL_WITH.items():
        yield _not_below(usual, (EXPOSURE,), measure, USUAL, LEVEL_THEME, margin)
    for measure in (CUM, RUN):
        yield _ahead(by_world[RARE], measure)
    for label in SEVERITIES:
        yield _loses_less(usual, by_world[label], label)
        yield _not_below(by_world[label], TUNED_EBRANK, CUM, label, CURVE_THEME)
    for label in ("cascade users", "dcm users"):
        for measure in (CUM, RUN):
            yield _not_below(by_world[label], TUNED_EBRANK, measure, label, USERS_THEME)


def _not_below(
    results: ByKey,
    rivals: tuple[str, ...],
    measure: Measure,
    world: str,
    theme: str,
    margin: float = 0.0,
) -> Finding:
    """Return whether auto is not below the best of some rivals, or by no more than a margin."""
    gain, rival = _gain(results, rivals, measure, -margin)
    behind = f"at most {measure.text(margin)} below" if margin else "not below"
    whose = "EBRank (exposure)" if rivals == (EXPOSURE,) else "the better of both EBRanks"
    return Finding(
        _name("not-below", measure, world),
        f"auto is {behind} {whose}, tuned, in {measure.title}: {world}",
        gain.verdict,
        f"against {rival}; {p_text(gain.p_value)}",
        theme,
        f"{measure.title}, {world}",
        ours=True,
        effect=gain.effect(measure),
    )


def _ahead(results: ByKey, measure: Measure) -> Finding:
    """Return whether auto is ahead of untuned EBRank where clicks are rare."""
    gain, rival = _gain(results, LEFT_ALONE, measure)
    return Finding(
        _name("ahead", measure, "rare clicks"),
        f"auto is ahead of the better of both untuned EBRanks in {measure.title}: {RARE}",
        gain.verdict,
        f"against {rival}; {p_text(gain.p_value)}",
        RARE_THEME,
        measure.title,
        ours=True,
        effect=gain.effect(measure),
    )


def _loses_less(usual: ByKey, wrong: ByKey, world: str) -> Finding:
    """Return whether a wrong curve costs auto less than half of what it costs EBRank.

    A loss within the margin counts as none, whatever EBRank loses. These are two chances to confirm
    the claim, so p-values are adjusted for both.
    """
    ours, theirs = (shares(usual[key], wrong[key], CUM) for key in (AUTO, EXPOSURE))
    margin = LEVEL_WITH[CUM]
    allowed = {"half": theirs / 2, "margin": np.full(len(ours), margin / len(ours))}
    saved = contrasts({name: each - ours for name, each in allowed.items()})
    decided = min(saved.values(), key=lambda each: (VERDICTS.index(each.verdict), -each.difference))
    losses = [CUM.text(float(each.sum())) for each in (ours, theirs)]
    return Finding(
        _name("loses-less", CUM, world),
        "auto loses less than half of the Cum-NDCG that EBRank (exposure), tuned, loses, or less "
        f"than {CUM.text(margin)}: {world}",
        decided.verdict,
        f"auto loses {losses[0]}, EBRank (exposure) {losses[1]}; adjusted "
        f"{p_text(decided.p_value)}",
        CURVE_THEME,
        f"loss, {world}",
        ours=True,
        effect=replace(decided, whole=CUM.mean(usual[AUTO])).effect(CUM, "Cum-NDCG spared"),
    )


def _gain(
    results: ByKey, rivals: tuple[str, ...], measure: Measure, border: float = 0.0
) -> tuple[Contrast, str]:
    """Return auto's gain over the best of some rivals, and that rival."""
    rival = _best(results, rivals, measure)
    gain = pairwise({"": (results[AUTO], results[rival])}, measure, border)[""]
    return gain, entrant_of(rival).label


def _name(what: str, measure: Measure, world: str) -> str:
    return f"auto-{what}-{measure.name}-{world.replace(' ', '-')}"


EXPERIMENT = Experiment("beyond", TITLE, outcome, runs, on_request=True)
