"""How much depends on β of the prior, which the paper sets to 5. ε is the one chosen for β = 5."""

from __future__ import annotations

from ebrank.experiments.exhibits.extras.sweep import Sweep
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, entrant_of

SWEEP = Sweep(
    name="beta",
    title="Dependence on β",
    caption="EBRank with other values of β, the second parameter of its Beta prior; ε stays the "
    "one chosen for β = 5.",
    x_label="β",
    values=(0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
    entrants=(entrant_of(EBRANK), entrant_of(EXPOSURE)),
    run=lambda setup, entrant, beta: setup.run(entrant.key, beta=beta),
    log_x=True,
)
EXPERIMENT = SWEEP.experiment
