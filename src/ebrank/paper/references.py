"""Published figures: those of the paper's tables, and those that its released code measures.

Rankers have the texts that `registry.parse` reads, and datasets the names that the paper gives
them. A dataset's origin, not its name, decides which figures it is compared with. The embedded
datasets stand in for those of the paper, whole or scaled:

>>> paper = reference_for(Origin("mq2007-like", preset=True, scale=0.1))
>>> paper.dataset, paper.performance["ebrank"].warm
('MQ2007', 0.849)
>>> reference_for(Origin("MQ2008", fold=1)).source == RELEASED_CODE
True
>>> reference_for(None) is None  # your own files
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ebrank.lab.data import published
from ebrank.lab.data.dataset import Origin
from ebrank.paper.framework.entrants import EBRANK, EXPOSURE, NAMES, UCBRANK
from ebrank.paper.framework.exhibit import Run, Setup

CITATION = (
    "Tao Yang, Cuize Han, Chen Luo, Parth Gupta, Jeff M. Phillips, and Qingyao Ai: "
    "Mitigating Exploitation Bias in Learning to Rank with an Uncertainty-aware Empirical Bayes "
    "Approach, 2023"
)
RELEASED_CODE = (
    "the authors' released code (github.com/Taosheng-ty/EBRank), repaired just enough to run: "
    "14,560 sessions on MQ2008, fold 1; it does not repeat itself by seed; one to five runs each"
)
STAND_INS = MappingProxyType(
    {"mq2007-like": "MQ2007", "mslr10k-like": "MSLR-10K", "mslr30k-like": "MSLR-30K"}
)
"""Which dataset each embedded one stands in for."""


@dataclass(frozen=True)
class Statistics:
    """A dataset after filtering (the paper's Table tab:data_statistics)."""

    queries: int
    candidates: int
    features: int
    max_label: int


@dataclass(frozen=True)
class Performance:
    """Cold-, Warm- and Cum-NDCG at 5 (Table tab:rankingPerform)."""

    cold: float
    warm: float
    cum: float


@dataclass(frozen=True)
class Ratio:
    """Shares of a linear model's absolute weights (Table tab:modelWeight, eq:weightRatio).

    Attributes:
        behavior: that of x^b.
        other: the largest of all other features; None where it was not published.
        behavior_sd, other_sd: standard deviations, None where unknown.
    """

    behavior: float
    behavior_sd: float | None = None
    other: float | None = None
    other_sd: float | None = None


@dataclass(frozen=True)
class Reference:
    """Published figures on one dataset.

    Attributes:
        dataset: the paper's name for it.
        source: where the figures are from.
        performance, ratios: by ranker.
        statistics: None if the source has none.
    """

    dataset: str
    source: str
    performance: Mapping[str, Performance]
    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    statistics: Statistics | None = None

    @property
    def released(self) -> bool:
        """Whether the released code measured them."""
        return self.source == RELEASED_CODE

    @property
    def whose(self) -> str:
        """Whose figures they are, in a word or two."""
        return "released code" if self.released else "paper"


def reference_for(origin: Origin | None) -> Reference | None:
    """Return the published figures to compare results on a dataset with; None if there are none.

    Files that differ from the published ones have none, whatever their name.
    """
    if origin is None:
        return None
    if origin.preset:
        return REFERENCES.get(stands_in_for(origin) or "")
    entry = published.find(origin.name) if origin.published else None
    if entry is None:
        return None
    own = (theirs for name, theirs in REFERENCES.items() if published.find(name) is entry)
    return next(own, None)


def stands_in_for(origin: Origin | None) -> str | None:
    """Return which of the paper's datasets an embedded one, whole or scaled, stands in for.

    >>> stands_in_for(Origin("mslr10k-like", preset=True)), stands_in_for(Origin("MQ2007"))
    ('MSLR-10K', None)
    """
    return STAND_INS.get(origin.name) if origin is not None and origin.preset else None


DATASETS = ("MQ2007", "MSLR-10K", "MSLR-30K")
"""The paper's datasets, in its order."""

STATISTICS = {
    "MQ2007": Statistics(1643, 41, 46, 2),
    "MSLR-10K": Statistics(9835, 122, 133, 4),
    "MSLR-30K": Statistics(30995, 121, 133, 4),
}

PERFORMANCE = """
bm25                        .474 .474 94.38   .449 .449 90.39   .451 .451 89.98
dbgd:features=none          .557 .557 110.6   .488 .488 98.66   .498 .498 99.40
mgd:features=none           .562 .562 110.9   .473 .473 95.72   .502 .502 101.3
pdgd:features=none          .599 .599 115.0   .525 .525 105.2   .525 .525 106.0
cftopk:features=none        .591 .591 116.7   .510 .510 102.9   .506 .506 101.6
cfrandomk:features=none     .589 .589 87.69   .509 .509 79.59   .514 .514 78.63
cfepsilon:features=none     .589 .589 94.39   .510 .510 84.75   .518 .518 83.88
dbgd:features=concate       .514 .729 144.7   .451 .571 114.3   .462 .607 118.8
mgd:features=concate        .523 .725 142.1   .461 .558 109.0   .444 .595 122.5
pdgd:features=concate       .574 .745 147.6   .466 .591 117.9   .480 .584 116.4
cftopk:features=concate     .385 .579 113.5   .369 .489 97.53   .366 .491 97.65
cfrandomk:features=concate  .377 .771 87.11   .403 .596 79.82   .404 .603 78.91
cfepsilon:features=concate  .387 .789 143.8   .355 .683 116.8   .354 .686 116.8
prior                       .597 .791 158.7   .507 .554 110.3   .503 .557 111.4
ucbrank                     .593 .799 158.9   .514 .703 140.1   .509 .703 140.5
ebrank                      .596 .849 171.3   .513 .762 151.6   .513 .762 152.0
"""
"""Cold, warm and cum, for each of `DATASETS`."""

RATIOS = """
cfepsilon:features=concate  .604 .098   .071 .038
cfrandomk:features=concate  .498 .067   .103 .026
cftopk:features=concate     .591 .087   .098 .033
dbgd:features=concate       .109 .021   .063 .019
mgd:features=concate        .110 .026   .062 .018
pdgd:features=concate       .623 .037   .036 .004
prior                       .572 .105   .089 .043
"""
"""On MQ2007: x^b's ratio and its deviation, the largest other one and its deviation."""

RELEASED = """
bm25                                   .625 .625 125.7
cftopk:features=none                   .695 .695 139.5
cftopk:features=concate                .465 .711 141.2   .574
cfrandomk:features=concate             .558 .836 104.9   .657
cfepsilon:features=concate             .517 .822 152.9   .488
dbgd:features=concate                  .680 .765 150.7   .093
mgd:features=concate                   .691 .749 148.0   .064
pdgd:features=none                     .734 .734 144.1
pdgd:features=concate                  .695 .855 170.7   .594
prior                                  .705 .779 157.5   .717
ucbrank:epsilon=0.0                    .699 .845 170.1
ebrank:epsilon=0.0                     .701 .833 171.3
ebrank:epsilon=0.0,estimator=exposure  .708 .883 176.8
ebrank:estimator=exposure              .709 .886 176.0
ebrank:part=prior                      .668 .668 134.6
ebrank:part=behavior                   .527 .727 147.3
"""
"""On MQ2008: cold, warm, cum, and x^b's ratio where there is one; ε is 20 where none is given."""


def _numbers(text: str) -> dict[str, list[float]]:
    """Return the lines' numbers by their first word."""
    lines = (line.split() for line in text.strip().splitlines())
    return {name: [float(number) for number in numbers] for name, *numbers in lines}


def _from_paper(dataset: str, place: int) -> Reference:
    columns = slice(3 * place, 3 * place + 3)
    rows = _numbers(PERFORMANCE).items()
    return Reference(
        dataset,
        CITATION,
        {ranker: Performance(*numbers[columns]) for ranker, numbers in rows},
        {ranker: Ratio(*numbers) for ranker, numbers in _numbers(RATIOS).items()}
        if dataset == "MQ2007"
        else {},
        STATISTICS[dataset],
    )


def _from_released_code() -> Reference:
    rows = _numbers(RELEASED).items()
    return Reference(
        "MQ2008",
        RELEASED_CODE,
        {ranker: Performance(*numbers[:3]) for ranker, numbers in rows},
        {ranker: Ratio(*numbers[3:]) for ranker, numbers in rows if numbers[3:]},
    )


REFERENCES = MappingProxyType(
    {name: _from_paper(name, place) for place, name in enumerate(DATASETS)}
    | {"MQ2008": _from_released_code()}
)
"""All published figures, by dataset."""


# --- variants ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """A ranker of Table 2 with one decision made differently, perhaps as in the released code.

    PROTOCOL settles on one way for each decision and keeps the others as parameters. Those that may
    change the figures are run as well, so that the ledger can say whether they explain a
    difference.

    >>> VARIANTS[1].name, VARIANTS[1].key, dict(VARIANTS[1].changes)
    ('EBRank, prior trained on n > 20', 'ebrank', {'min_impressions': 20})

    Attributes:
        name: what differs.
        key: an entrant's key, whose chosen ε it shares, or any other ranker's text.
        against: rankers whose published figures to compare it with; the first that has any counts.
            If the reference has a ranker only with ε = 0, a name without ε means that one.
        changes: its parameters that differ from the key's.
    """

    name: str
    key: str
    against: tuple[str, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)

    def run(self, setup: Setup) -> Run:
        """Return its run."""
        return setup.run(self.key, **self.changes)


OFTEN_SHOWN = {"min_impressions": 20}
IPS = {"behavior": "ips"}
OFTEN = "prior trained on n > 20"

_WITH_BEHAVIOR = {
    **{f"{label} (Concate)": f"{name}:features=concate" for name, label in NAMES.items()},
    "PRIOR": "prior",
    "UCBRank": UCBRANK,
}
VARIANTS = (
    Variant("EBRank, exposure", EXPOSURE, (EXPOSURE, EBRANK)),
    Variant(f"EBRank, {OFTEN}", EBRANK, (EBRANK,), OFTEN_SHOWN),
    Variant(f"EBRank, exposure, {OFTEN}", EXPOSURE, (EXPOSURE, EBRANK), OFTEN_SHOWN),
    *(Variant(f"{label}, x^b = C/n", key, (key,), IPS) for label, key in _WITH_BEHAVIOR.items()),
)
"""Compared with the paper's figures, or the released code's where these are the reference."""

AS_RELEASED = (
    Variant(
        "UCBRank, ε = 0, x^b once clicked",
        "ucbrank:epsilon=0,shown=clicked",
        ("ucbrank:epsilon=0.0",),
    ),
    Variant(
        f"EBRank, ε = 0, {OFTEN}",
        "ebrank:epsilon=0,min_impressions=20",
        ("ebrank:epsilon=0.0",),
    ),
    Variant(
        f"EBRank, exposure, ε = 0, {OFTEN}",
        "ebrank:epsilon=0,estimator=exposure,min_impressions=20",
        ("ebrank:epsilon=0.0,estimator=exposure",),
    ),
    Variant(
        f"EBRank, exposure, ε = 20, {OFTEN}",
        "ebrank:epsilon=20,estimator=exposure,min_impressions=20",
        (EXPOSURE,),
    ),
    Variant("EBRank, only the prior", "ebrank:part=prior", ("ebrank:part=prior",)),
    Variant("EBRank, only behavior", "ebrank:part=behavior", ("ebrank:part=behavior",)),
)
"""Compared with the released code's own figures, with its own parameters."""


def variants(origin: Origin | None) -> tuple[Variant, ...]:
    """Return those with reference figures.

    >>> origins = (Origin("mq2007-like", preset=True), Origin("MQ2008"), None)
    >>> [len(variants(origin)) for origin in origins]
    [11, 17, 0]
    """
    theirs = reference_for(origin)
    if theirs is None:
        return ()
    return VARIANTS + (AS_RELEASED if theirs.released else ())
