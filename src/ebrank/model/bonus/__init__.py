"""How much it is worth to show an item we know little about, one bonus per file.

A bonus is a plain function that names what it needs: the item's `relevance` and its `spread`, a
`draw` from its posterior, what users did (`shown`, `clicks`, `exposure`), the family's numbers
(`alpha`, `beta`), and its own parameters. Its value is added to the relevance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ebrank.parameters import Configured


class Bonus(Configured):
    """What showing an item is worth beyond its relevance; derive from it to add one.

    Class attributes:
        value: the function; it is compiled, so it takes and returns plain numbers.
        noisy: whether it draws, so that every candidate has a new score in every list.
    """

    value: ClassVar[Callable[..., Any]]
    noisy: ClassVar[bool] = False
