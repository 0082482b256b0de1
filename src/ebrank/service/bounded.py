"""A dictionary that forgets what was longest unused once it weighs too much.

>>> lists = Bounded[str, str](limit=6, weight=len)
>>> for name in ("one", "two"):
...     lists.put(name, name)
>>> lists.get("one")
'one'
>>> lists.put("six", "six")
>>> lists.get("two") is None
True
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """Keeps values, which do not change, up to a limit of what they weigh together.

    The last one put is kept whatever it weighs.
    """

    def __init__(self, limit: int, weight: Callable[[V], int]) -> None:
        self._limit = limit
        self._weight = weight
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """Return a value, which counts as used, or None."""
        value = self._kept.get(key)
        if value is not None:
            self._kept.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keep a value, in place of the one of the same key."""
        old = self._kept.pop(key, None)
        self._total += self._weight(value) - (0 if old is None else self._weight(old))
        self._kept[key] = value
        while self._total > self._limit and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._total -= self._weight(dropped)
