"""What to type to get figures that are not there: the same order on the same data.

>>> again(Origin("mq2007-like", preset=True, scale=0.1), seed=3)
'ebrank reproduce --dataset mq2007-like --scale 0.1 --seed 3'
>>> again(Origin("MQ2008", fold=2), trials=2)
'ebrank reproduce --dataset MQ2008 --data-dir FOLDER --fold 2 --trials 2'
"""

from __future__ import annotations

from ebrank.data.dataset import Origin
from ebrank.experiments.run import Setup

TRIALS, SEED, UPDATES, FOLD = 5, 0, 20, 1
"""What the command does by default."""


def again(origin: Origin, *, trials: int = TRIALS, seed: int = SEED) -> str:
    """Return the command for a dataset, with the options that are not the default."""
    words = [f"--dataset {origin.name}"]
    if not origin.preset:
        words.append("--data-dir FOLDER")
    if origin.scale != 1:
        words.append(f"--scale {origin.scale:g}")
    if origin.fold not in (None, FOLD):
        words.append(f"--fold {origin.fold}")
    words += [f"--{name.replace('_', '-')} {value}" for name, value in origin.options]
    if trials != TRIALS:
        words.append(f"--trials {trials}")
    if seed != SEED:
        words.append(f"--seed {seed}")
    return " ".join(["ebrank reproduce", *words])


def as_ordered(setup: Setup) -> str:
    """Return the command that a setup is of; every ε that was given is given again."""
    origin, config = setup.dataset.origin, setup.config
    assert origin is not None  # without one there is no reference, and nothing to fill
    words = [again(origin, trials=setup.trials, seed=setup.seed)]
    given = dict.fromkeys(one.ranker for one in setup.tuning if one.seed is None)
    words += [f"--given {ranker}" for ranker in given]
    if config.sessions is not None:
        words.append(f"--sessions {config.sessions}")
    if config.updates != UPDATES:
        words.append(f"--updates {config.updates}")
    return " ".join(words)
