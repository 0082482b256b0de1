"""The settings of an experiment, each declared once: its option, default, range and help.

`SimulationConfig` checks its fields by them, and the command line makes its options of them.
Nothing heavy is imported here, so that `--help` answers at once.

>>> SETTINGS["gamma"].field, SETTINGS["gamma"].default, SETTINGS["gamma"].range
('discount', 0.995, '(0, 1)')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ebrank.parameters import check_whole, is_number, require


class Setting(NamedTuple):
    """One setting.

    Attributes:
        default: None if it follows from the others.
        range: an interval of numbers, such as `(0, 1]`; "" for texts.
        help: what it means.
        field: of `SimulationConfig`; "" if it becomes a part of one.
        metavar: what stands for its value in help.
        choices: the texts it may be.
        kind: its type.
    """

    default: Any
    range: str
    help: str
    field: str = ""
    metavar: str = "NUMBER"
    choices: tuple[str, ...] = ()
    kind: type = float

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The ends of its range; None for no end."""
        low, high = (end.strip() for end in self.range[1:-1].split(","))
        return int(low), None if high == "∞" else int(high)

    @property
    def open_ends(self) -> tuple[bool, bool]:
        """Whether the range excludes its ends."""
        return self.range[0] == "(", self.range[-1] == ")"

    def check(self, value: object) -> None:
        """Raise unless the setting may have this value."""
        if self.choices:
            require(value in self.choices, f"{self.field} must be {' or '.join(self.choices)}")
            return
        low, high = self.bounds
        if self.kind is int:
            check_whole(self.field, value, at_least=low, optional=self.default is None)
            return
        assert high is not None
        inside = is_number(value) and low <= value <= high
        excluded = [end for end, open in zip((low, high), self.open_ends, strict=True) if open]
        require(inside and value not in excluded, f"{self.field} must lie in {self.range}")


SETTINGS: Mapping[str, Setting] = {
    "eta": Setting(
        1.0,
        "(0, 1]",
        "Probability that an item enters in a session of its query.",
        field="entering_probability",
    ),
    "sessions": Setting(
        None,
        "[1, ∞)",
        "Sessions per trial; by default (rows − 5·queries)/η.",
        field="sessions",
        kind=int,
    ),
    "updates": Setting(20, "[1, ∞)", "Model updates per trial.", field="updates", kind=int),
    "warmup": Setting(
        20,
        "[0, ∞)",
        "Sessions per query that the production ranker serves first.",
        field="warmup_sessions",
        kind=int,
    ),
    "initial": Setting(
        "5-10",
        "",
        "Candidates each query starts with; the others enter later.",
        metavar="FEWEST-MOST",
    ),
    "list_length": Setting(
        5,
        "[1, ∞)",
        "Items shown in a list. Users look at the first 5, unless you set --cutoff.",
        field="list_length",
        kind=int,
    ),
    "labels": Setting(
        "graded",
        "",
        "Relevance labels as they are, or binary: every label above 0 becomes 1.",
        field="labels",
        choices=("graded", "binary"),
    ),
    "traffic": Setting(
        "uniform",
        "",
        "How often queries are asked: all equally often, or by zipf, with probabilities "
        "proportional to 1/rank in a random order.",
        field="traffic",
        choices=("uniform", "zipf"),
    ),
    "users": Setting(
        "pbm",
        "",
        "How users look and click: pbm (as in the paper), cascade, dcm, dbn, or your own model as "
        "MODULE:CLASS. setting=perfect, navigational or informational takes the probabilities from "
        "the literature.",
        metavar="NAME[:PARAM=VALUE,…]",
    ),
    "noise": Setting(
        None,
        "[0, 1]",
        "R of irrelevant items, 0.1 by default: how likely users click them, and what they add to "
        "NDCG; short for noise=… in --users.",
        metavar="SHARE",
    ),
    "cutoff": Setting(
        None,
        "[1, ∞)",
        "The last rank users look at, 5 by default; short for cutoff=… in --users.",
        metavar="RANK",
        kind=int,
    ),
    "click_rate": Setting(
        1.0,
        "(0, 1]",
        "Multiply every click probability by this: 0.15 makes R range from .015 to .15, as in a "
        "shop. NDCG still uses the unscaled R.",
        field="click_rate",
        metavar="FACTOR",
    ),
    "examination": Setting(
        None,
        "",
        "How far down rankers believe users look: an exponent of 1/log2(rank + 1), or the "
        "probabilities of ranks 1, 2, …; by default, what users really do.",
        metavar="SEVERITY|P1,P2,…",
    ),
    "gamma": Setting(
        0.995,
        "(0, 1)",
        "Discount in Cum-NDCG: how much each list counts relative to the next one.",
        field="discount",
    ),
    "measure_at": Setting(
        "5,1,3,10",
        "",
        "Cutoffs of Cold-NDCG and Warm-NDCG; tables show the first one.",
        metavar="RANK,…",
    ),
}
"""By the name of the option."""
