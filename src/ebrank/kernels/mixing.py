"""The mixing function of SplitMix64 (Steele, Lea and Flood 2014), for NumPy arrays and kernels.

A key is 64 bits, and so is each of its children: different ones for different numbers, as good as
random. `kernels.streams` draws by them in kernels, `evidence.forgetting` in NumPy.

>>> child(np.uint64(7), np.arange(2))
array([7191089600892374487,  309689372594955804], dtype=uint64)
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ebrank.kernels.registry import register

Word = TypeVar("Word", np.uint64, npt.NDArray[np.uint64])

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix(z: Word) -> Word:
    """Return 64 well-mixed bits of z; a bijection, whose result passes the usual test batteries."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def child(key: Word, index: Any) -> Word:  # noqa: ANN401 (a number, or an array of them)
    """Derive the index-th child of a key."""
    return mix(key + _GOLDEN * (np.uint64(index) + np.uint64(1)))


register(__name__)
