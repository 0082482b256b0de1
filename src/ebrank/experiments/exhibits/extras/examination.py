"""What if rankers are wrong about what users look at?

By default, users examine rank k with probability 1/log2(k + 1), severity 1, down to the last rank
shown. Rankers debias clicks with another severity: 0 is no debiasing, 2 is too much. They keep the
ε chosen for the curve that is configured, the right one by default.
"""

from __future__ import annotations

from dataclasses import replace

from ebrank.experiments.exhibits.extras.sweep import Sweep
from ebrank.experiments.framework.entrants import FIGURES, Entrant
from ebrank.experiments.framework.experiment import Run, Setup


def run_of(setup: Setup, entrant: Entrant, severity: float) -> Run:
    """Return the run of an entrant that believes in a severity, which may be the users' own."""
    actual = setup.config.users.examination
    believed = replace(actual, curve=None, severity=severity)
    config = replace(setup.config, believed=None if believed == actual else believed)
    return replace(setup.run(entrant.key), config=config)


SWEEP = Sweep(
    name="examination",
    title="A wrong examination curve",
    caption="Rankers debias clicks as if users examined rank k with probability 1/log2(k + 1) to "
    "the power on the x axis, the severity; that of users is 1 by default. At 0, x^b = c/E is "
    "the very click rate C/n that counterfactual models are fitted to.",
    x_label="believed severity",
    values=(0.0, 0.5, 1.0, 1.5, 2.0),
    entrants=tuple(entrant for entrant in FIGURES if entrant.key != "bm25"),
    run=run_of,
)
EXPERIMENT = SWEEP.experiment
