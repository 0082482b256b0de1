"""The settings of a simulation, each declared once: its option, default, range and help.

`SimulationConfig` takes defaults and ranges from them (`setting`), the command line its options.
Nothing heavy is imported here, so that `--help` answers at once.

>>> SETTINGS["updates"].default, SETTINGS["updates"].domain
(20, 'a whole number of 1 or more')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ebrank.parameters import Parameter

LEAST = 1e-9
"""The least of probabilities that must not be 0."""


def _setting(
    default: Any,  # noqa: ANN401 (of any type)
    help: str,
    at_least: float | None = None,
    at_most: float | None = None,
    *,
    choices: tuple[str, ...] = (),
    kind: type | None = None,
) -> Parameter:
    own = kind or (str if default is None else type(default))
    return Parameter("", default, help, at_least, at_most, choices, (), False, own)


SETTINGS: Mapping[str, Parameter] = {
    "eta": _setting(
        1.0, "Probability that an item enters in a session of its query.", at_least=LEAST, at_most=1
    ),
    "sessions": _setting(
        None, "Sessions per trial; by default (rows − 5·queries)/η.", at_least=1, kind=int
    ),
    "updates": _setting(20, "Model updates per trial.", at_least=1),
    "warmup": _setting(
        20, "Sessions per query that the production ranker serves first.", at_least=0
    ),
    "initial": _setting("5-10", "Candidates each query starts with; the others enter later."),
    "list_length": _setting(
        5, "Items shown in a list. Users look at the first 5, unless you set --cutoff.", at_least=1
    ),
    "labels": _setting(
        "graded",
        "Relevance labels as they are, or binary: every label above 0 becomes 1.",
        choices=("graded", "binary"),
    ),
    "traffic": _setting(
        "uniform",
        "How often queries are asked: all equally often, or by zipf, with probabilities "
        "proportional to 1/rank in a random order.",
        choices=("uniform", "zipf"),
    ),
    "users": _setting(
        "pbm",
        "How users look and click: pbm (as in the paper), cascade, dcm, dbn, or your own model as "
        "MODULE:CLASS. setting=perfect, navigational or informational takes the probabilities from "
        "the literature.",
    ),
    "noise": _setting(
        None,
        "R of irrelevant items, 0.1 by default: how likely users click them, and what they add to "
        "NDCG; short for noise=… in --users.",
        at_least=0,
        at_most=1,
        kind=float,
    ),
    "cutoff": _setting(
        None,
        "The last rank users look at, 5 by default; short for cutoff=… in --users.",
        at_least=1,
        kind=int,
    ),
    "click_rate": _setting(
        1.0,
        "Multiply every click probability by this: 0.15 makes R range from .015 to .15, as in a "
        "shop. NDCG still uses the unscaled R.",
        at_least=LEAST,
        at_most=1,
    ),
    "examination": _setting(
        None,
        "How far down rankers assume users look: an exponent of 1/log2(rank + 1), or the "
        "probabilities of ranks 1, 2, …; by default, what users really do.",
    ),
    "gamma": _setting(
        0.995,
        "Discount in Cum-NDCG: how much each list counts relative to the next one.",
        at_least=LEAST,
        at_most=1 - LEAST,
    ),
    "measure_at": _setting(
        "5,1,3,10",
        "Cutoffs of Cold-NDCG and Warm-NDCG; tables show the first one.",
    ),
}
"""By the name of the option."""


def setting(name: str) -> Any:  # noqa: ANN401 (stands in for the field's own type)
    """Return a dataclass field with the default of a setting, which knows its name."""
    return field(default=SETTINGS[name].default, metadata={"setting": name})
