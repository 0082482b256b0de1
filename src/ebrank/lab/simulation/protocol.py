"""The settings of an experiment, each declared once: its option, default, range and help.

`SimulationConfig` takes defaults and ranges from them (`setting`), the command line its options.
Nothing heavy is imported here, so that `--help` answers at once.

>>> SETTINGS["gamma"].default, SETTINGS["gamma"].range, SETTINGS["gamma"].kind
(0.995, '(0, 1)', <class 'float'>)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple

from ebrank.parameters import check_whole, is_number, require


class Setting(NamedTuple):
    """One setting.

    Attributes:
        default: None if it follows from the others.
        help: what it means.
        range: an interval of numbers, such as `(0, 1]`, whole ones if unbounded; "" for texts.
        metavar: what stands for its value in help.
        choices: the texts it may be.
    """

    default: Any
    help: str
    range: str = ""
    metavar: str = "NUMBER"
    choices: tuple[str, ...] = ()

    @property
    def kind(self) -> type:
        """The type of its numbers."""
        return int if "∞" in self.range else float

    @property
    def bounds(self) -> tuple[int, int | None]:
        """The ends of its range; None for no end."""
        low, high = (end.strip() for end in self.range[1:-1].split(","))
        return int(low), None if high == "∞" else int(high)

    @property
    def open_ends(self) -> tuple[bool, bool]:
        """Whether the range excludes its ends."""
        return self.range[0] == "(", self.range[-1] == ")"

    def check(self, name: str, value: object) -> None:
        """Raise unless the setting, a field of this name, may have this value."""
        if self.choices:
            require(value in self.choices, f"{name} must be {' or '.join(self.choices)}")
            return
        low, high = self.bounds
        if high is None:
            check_whole(name, value, at_least=low, optional=self.default is None)
            return
        inside = is_number(value) and low <= value <= high
        excluded = [end for end, open in zip((low, high), self.open_ends, strict=True) if open]
        require(inside and value not in excluded, f"{name} must lie in {self.range}")


SETTINGS: Mapping[str, Setting] = {
    "eta": Setting(1.0, "Probability that an item enters in a session of its query.", "(0, 1]"),
    "sessions": Setting(None, "Sessions per trial; by default (rows − 5·queries)/η.", "[1, ∞)"),
    "updates": Setting(20, "Model updates per trial.", "[1, ∞)"),
    "warmup": Setting(20, "Sessions per query that the production ranker serves first.", "[0, ∞)"),
    "initial": Setting(
        "5-10", "Candidates each query starts with; the others enter later.", metavar="FEWEST-MOST"
    ),
    "list_length": Setting(
        5, "Items shown in a list. Users look at the first 5, unless you set --cutoff.", "[1, ∞)"
    ),
    "labels": Setting(
        "graded",
        "Relevance labels as they are, or binary: every label above 0 becomes 1.",
        choices=("graded", "binary"),
    ),
    "traffic": Setting(
        "uniform",
        "How often queries are asked: all equally often, or by zipf, with probabilities "
        "proportional to 1/rank in a random order.",
        choices=("uniform", "zipf"),
    ),
    "users": Setting(
        "pbm",
        "How users look and click: pbm (as in the paper), cascade, dcm, dbn, or your own model as "
        "MODULE:CLASS. setting=perfect, navigational or informational takes the probabilities from "
        "the literature.",
        metavar="NAME[:PARAM=VALUE,…]",
    ),
    "noise": Setting(
        None,
        "R of irrelevant items, 0.1 by default: how likely users click them, and what they add to "
        "NDCG; short for noise=… in --users.",
        "[0, 1]",
        metavar="SHARE",
    ),
    "cutoff": Setting(
        None,
        "The last rank users look at, 5 by default; short for cutoff=… in --users.",
        "[1, ∞)",
        metavar="RANK",
    ),
    "click_rate": Setting(
        1.0,
        "Multiply every click probability by this: 0.15 makes R range from .015 to .15, as in a "
        "shop. NDCG still uses the unscaled R.",
        "(0, 1]",
        metavar="FACTOR",
    ),
    "examination": Setting(
        None,
        "How far down rankers believe users look: an exponent of 1/log2(rank + 1), or the "
        "probabilities of ranks 1, 2, …; by default, what users really do.",
        metavar="SEVERITY|P1,P2,…",
    ),
    "gamma": Setting(
        0.995, "Discount in Cum-NDCG: how much each list counts relative to the next one.", "(0, 1)"
    ),
    "measure_at": Setting(
        "5,1,3,10",
        "Cutoffs of Cold-NDCG and Warm-NDCG; tables show the first one.",
        metavar="RANK,…",
    ),
}
"""By the name of the option."""


def setting(name: str) -> Any:  # noqa: ANN401 (stands in for the field's own type)
    """Return a dataclass field with the default of a setting, which knows its name."""
    return field(default=SETTINGS[name].default, metadata={"setting": name})
