"""Table 2's rankers with one decision made differently, perhaps as in the paper or released code.

PROTOCOL settles on one way for each decision and keeps the others as parameters. Those that may
change the figures are run as well, so that the ledger can say whether they explain a difference.

>>> VARIANTS[1].name, VARIANTS[1].key, dict(VARIANTS[1].changes)
('EBRank, prior trained on n > 20', 'ebrank', {'min_impressions': 20})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ebrank.data.dataset import Origin
from ebrank.experiments.framework.entrants import EBRANK, EXPOSURE, UCBRANK
from ebrank.experiments.framework.experiment import Run, Setup
from ebrank.experiments.ledger.references import RELEASED_CODE, reference_for


@dataclass(frozen=True)
class Variant:
    """A ranker of Table 2 with one decision made differently.

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

VARIANTS = (
    Variant("EBRank, exposure", EXPOSURE, (EXPOSURE, EBRANK)),
    Variant(f"EBRank, {OFTEN}", EBRANK, (EBRANK,), OFTEN_SHOWN),
    Variant(f"EBRank, exposure, {OFTEN}", EXPOSURE, (EXPOSURE, EBRANK), OFTEN_SHOWN),
    *(
        Variant(f"{label}, x^b = C/n", key, (key,), IPS)
        for label, key in (
            ("DBGD (Concate)", "dbgd:features=concate"),
            ("MGD (Concate)", "mgd:features=concate"),
            ("PDGD (Concate)", "pdgd:features=concate"),
            ("CFTopK (Concate)", "cftopk:features=concate"),
            ("CFRandomK (Concate)", "cfrandomk:features=concate"),
            ("CFEpsilon (Concate)", "cfepsilon:features=concate"),
            ("PRIOR", "prior"),
            ("UCBRank", UCBRANK),
        )
    ),
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
    return VARIANTS + (AS_RELEASED if theirs.source == RELEASED_CODE else ())
