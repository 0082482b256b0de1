"""Names of queries: two spellings of one search are one query.

>>> normalized("  Grüner\u00a0 TEE ")
'grüner tee'
>>> normalized("ﬁsh"), normalized("Straße")
('fish', 'strasse')
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from ebrank.service.api import LONGEST_QUERY
from ebrank.service.core.problems import Problem


def normalized(name: str) -> str:
    """Return a name in Unicode NFKC, without case, its words separated by single spaces.

    Names that look the same become the same, and a normalized name stays as it is.
    """
    folded = name.casefold()
    if not folded.isascii():
        # Folding may undo normalization, and normalization may undo folding.
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    return " ".join(folded.split())


def naming(*, normalize: bool) -> Callable[[str], str]:
    """Return the function that turns a name in a request into the name of a query."""
    return _checked if normalize else str


def _checked(name: str) -> str:
    query = normalized(name)
    if not query:
        raise Problem("a query's name contains only spaces", "query")
    if len(query) > LONGEST_QUERY:
        raise Problem(f"a query's name has more than {LONGEST_QUERY} characters", "query")
    return query
