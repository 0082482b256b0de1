"""The rankers of the paper's Table 2 and others, with their names and colors.

An entrant's `key` is the ranker's text before ε is chosen:

>>> [entrant.label for entrant in ENTRANTS if entrant.tuned]
['UCBRank', 'EBRank (paper)', 'EBRank (exposure)']
>>> entrant_of("cftopk:features=concate").setting
'W/-Behav (Concate)'
"""

from __future__ import annotations

from dataclasses import dataclass

WITHOUT = "W/o-Behav"
APART = "for comparison"
"""The heading of rows that are not the paper's."""
CONCATE = "W/-Behav (Concate)"
NON_CONCATE = "W/-Behav (non-Concate)"
NAMES = {
    "dbgd": "DBGD",
    "mgd": "MGD",
    "pdgd": "PDGD",
    "cftopk": "CFTopK",
    "cfrandomk": "CFRandomK",
    "cfepsilon": "CFEpsilon",
}
"""The rankers that run with and without the behavior feature."""


@dataclass(frozen=True)
class Entrant:
    """A ranker as tables and figures show it.

    Attributes:
        key: the ranker's text without tuned parameters.
        label: what readers see; the paper's name but for EBRank, of which there are several.
        setting: the paper's feature setting.
        style: its color and marker, in every figure and both settings.
        apart: not in the paper's table, so without bold, marks and tests.
    """

    key: str
    label: str
    setting: str
    style: str
    apart: bool = False

    @property
    def tuned(self) -> bool:
        """Whether some of its parameters are chosen on validation queries."""
        return self.key in TUNING

    @property
    def group(self) -> str:
        """The group it is compared with for bold and `*`: Concate and non-Concate are one."""
        return "without" if self.setting == WITHOUT else "with"

    @property
    def name(self) -> str:
        """Its label, with the setting where the label alone is ambiguous.

        >>> ENTRANTS[1].name
        'DBGD without clicks as a feature'
        """
        if self.style not in NAMES:
            return self.label
        return f"{self.label} {self.group} clicks as a feature"

    @property
    def heading(self) -> str:
        """The heading of its row in a table: its setting, or `APART`."""
        return APART if self.apart and self.key not in OURS else self.setting


def _twins(features: str, setting: str) -> tuple[Entrant, ...]:
    return tuple(
        Entrant(f"{name}:features={features}", label, setting, name)
        for name, label in NAMES.items()
    )


EBRANK = "ebrank"
EXPOSURE = "ebrank:estimator=exposure"
UCBRANK = "ucbrank"
TUNED = (UCBRANK, EBRANK, EXPOSURE)
"""Those of Table 2 whose ε is chosen on validation queries."""
AUTO = "auto"
OURS = (EBRANK, EXPOSURE, AUTO)
"""EBRank and what stands beside it wherever it is shown."""
TOPRANK = "toprank"
UNTUNED, EXPOSURE_UNTUNED = "ebrank:epsilon=20", "ebrank:epsilon=20,estimator=exposure"
"""EBRank with its defaults; its key alone means the tuned one."""
BOTH, EXPOSURE_BOTH = "ebrank:beta=5", "ebrank:beta=5,estimator=exposure"
"""EBRank with β chosen too, which the paper sets to 5."""
UPPER, THOMPSON, HYBRID = "ebrank:bonus=upper,estimator=exposure", "thompson:beta=5", "hybridlinucb"
TUNING: dict[str, tuple[str, ...]] = dict.fromkeys(TUNED, ("epsilon",)) | {
    EXPOSURE_BOTH: ("beta", "epsilon"),
    BOTH: ("beta", "epsilon"),
    UPPER: ("beta", "width"),
    THOMPSON: ("beta",),
    HYBRID: ("item_ridge", "alpha", "ridge"),
    "smoothedctr": ("strength",),
    "pbmucb": ("delta",),
    TOPRANK: ("delta",),
}
"""Which parameters are chosen on validation queries, by key."""
GRIDS = {
    "beta": (1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
    "epsilon": (0.0, 5.0, 20.0, 100.0, 500.0, 2000.0),
}
"""What is tried for β and ε together: ε·MC falls with the square of β, so the best ε grows with it.
"""

ENTRANTS = (
    Entrant("bm25", "BM25", WITHOUT, "bm25"),
    *_twins("none", WITHOUT),
    *_twins("concate", CONCATE),
    Entrant("prior", "PRIOR", CONCATE, "prior"),
    Entrant(UCBRANK, "UCBRank", NON_CONCATE, "ucbrank"),
    Entrant(EBRANK, "EBRank (paper)", NON_CONCATE, "ebrank"),
    Entrant(EXPOSURE, "EBRank (exposure)", NON_CONCATE, "ebrank-exposure", apart=True),
    Entrant(AUTO, "EBRank auto", NON_CONCATE, "auto", apart=True),
    Entrant("thompson", "Thompson", NON_CONCATE, "thompson", apart=True),
    Entrant("random", "Random", WITHOUT, "random", apart=True),
    Entrant("oracle", "Oracle", WITHOUT, "oracle", apart=True),
)
PAPER = tuple(entrant for entrant in ENTRANTS if not entrant.apart)
"""The 16 rows of the paper's table."""
CONCATENATING = tuple(entrant for entrant in PAPER if entrant.setting == CONCATE)
FIGURES = tuple(
    entrant
    for entrant in ENTRANTS
    if entrant.key in ("bm25", *OURS) or (entrant.group == "with" and not entrant.apart)
)
"""The rankers drawn: the paper's, which use behavior, BM25, EBRank's other estimator and `auto`."""

CONTENDERS = (
    Entrant(UNTUNED, "EBRank (paper), untuned", NON_CONCATE, "ebrank-untuned", apart=True),
    Entrant(
        EXPOSURE_UNTUNED, "EBRank (exposure), untuned", NON_CONCATE, "exposure-untuned", apart=True
    ),
    Entrant(
        EXPOSURE_BOTH, "EBRank (exposure), β and ε tuned", NON_CONCATE, "ebrank-exposure", True
    ),
    Entrant(BOTH, "EBRank (paper), β and ε tuned", NON_CONCATE, "ebrank", apart=True),
    Entrant(UPPER, "Posterior UCB", NON_CONCATE, "posterior-ucb", apart=True),
    Entrant(THOMPSON, "Thompson, tuned", NON_CONCATE, "thompson", apart=True),
    Entrant(HYBRID, "Hybrid LinUCB", NON_CONCATE, "hybridlinucb", apart=True),
    Entrant("pbmucb", "PBM-UCB", NON_CONCATE, "pbmucb", apart=True),
    Entrant("smoothedctr", "Smoothed CTR", NON_CONCATE, "smoothedctr", apart=True),
    Entrant(TOPRANK, "TopRank", NON_CONCATE, "toprank", apart=True),
)
"""Not in Table 2: EBRank as it comes and fully tuned, and other rankers in use."""

_BY_KEY = {entrant.key: entrant for entrant in (*ENTRANTS, *CONTENDERS)}


def entrant_of(key: str) -> Entrant:
    """Return the entrant with this key."""
    return _BY_KEY[key]


def twin(entrant: Entrant) -> Entrant | None:
    """Return the same ranker without the behavior feature, None where there is none.

    >>> twin(entrant_of("mgd:features=concate")).key
    'mgd:features=none'
    """
    key = entrant.key.replace("features=concate", "features=none")
    return None if key == entrant.key else entrant_of(key)
