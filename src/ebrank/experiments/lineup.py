"""Who takes part in the paper's Table 2, under which name and in whose colors.

An entrant's `key` is its ranker as one types it, before ε is chosen:

>>> [one.label for one in ENTRANTS if one.tuned]
['UCBRank', 'EBRank', 'EBRank (exposure)']
>>> entrant("cftopk:features=concate").setting
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
    """A row of Table 2.

    Attributes:
        key: the ranker's text without what is tuned.
        label: what the paper calls it.
        setting: the paper's feature setting.
        style: whose color and marker it has, in every figure and both settings.
        apart: not in the paper's table: takes part in no bold, no mark and no test.
        tuned: whether its ε is chosen on validation queries.
    """

    key: str
    label: str
    setting: str
    style: str
    apart: bool = False
    tuned: bool = False

    @property
    def group(self) -> str:
        """Who it is compared with for bold and `*`: Concate and non-Concate are one group."""
        return "without" if self.setting == WITHOUT else "with"

    @property
    def heading(self) -> str:
        """Under what it stands in a table: its setting, or that the paper has no such row."""
        return APART if self.apart and self.key != EXPOSURE else self.setting


def _twins(features: str, setting: str) -> tuple[Entrant, ...]:
    return tuple(
        Entrant(f"{name}:features={features}", label, setting, name)
        for name, label in NAMES.items()
    )


EBRANK = "ebrank"
EXPOSURE = "ebrank:estimator=exposure"
UCBRANK = "ucbrank"
TUNED = (UCBRANK, EBRANK, EXPOSURE)

ENTRANTS = (
    Entrant("bm25", "BM25", WITHOUT, "bm25"),
    *_twins("none", WITHOUT),
    *_twins("concate", CONCATE),
    Entrant("prior", "PRIOR", CONCATE, "prior"),
    Entrant(UCBRANK, "UCBRank", NON_CONCATE, "ucbrank", tuned=True),
    Entrant(EBRANK, "EBRank", NON_CONCATE, "ebrank", tuned=True),
    Entrant(EXPOSURE, "EBRank (exposure)", NON_CONCATE, "ebrank-exposure", apart=True, tuned=True),
    Entrant("thompson", "Thompson", NON_CONCATE, "thompson", apart=True),
    Entrant("random", "Random", WITHOUT, "random", apart=True),
    Entrant("oracle", "Oracle", WITHOUT, "oracle", apart=True),
)
PAPER = tuple(one for one in ENTRANTS if not one.apart)
"""The 16 rows of the paper's table."""
CONCATENATING = tuple(one for one in PAPER if one.setting == CONCATE)
FIGURES = tuple(
    one
    for one in ENTRANTS
    if one.key in ("bm25", EXPOSURE) or (one.group == "with" and not one.apart)
)
"""Who is drawn: as in the paper all that use behavior, BM25, and EBRank's other estimator."""

_BY_KEY = {one.key: one for one in ENTRANTS}


def entrant(key: str) -> Entrant:
    """Return the entrant with this key."""
    return _BY_KEY[key]


def twin(one: Entrant) -> Entrant | None:
    """Return the same ranker without the behavior feature, None where there is none.

    >>> twin(entrant("mgd:features=concate")).key
    'mgd:features=none'
    """
    key = one.key.replace("features=concate", "features=none")
    return None if key == one.key else entrant(key)
