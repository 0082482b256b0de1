"""Random numbers by counter: a draw is a pure function of its purpose, not of when it is made.

A key is 64 bits. `child(key, i)` derives the i-th key below it, so a draw is addressed like a file:
seed / stream / query / session / item. Any thread may make any draw in any order, and two rankers
that ask for the same user's mind get the same answer (`kernels.mixing`).

>>> key = child(trial_key(seed=1, trial=0), USERS)
>>> bool(0.0 <= uniform(key) < 1.0), bool(uniform(key) == uniform(key))
(True, True)
"""

from __future__ import annotations

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels import mixing
from ebrank.kernels.compiled import kernel, leaf
from ebrank.typing import Floats

QUERIES, ARRIVALS, USERS, TIES, RANKER, WEIGHTS = range(1, 7)
POPULARITY, ITEMS = range(8, 10)  # the toy example's features come from stream 7

_TO_UNIT = 2.0**-53


mix = leaf(mixing.mix)
child = leaf(mixing.child)


@leaf
def uniform(key: np.uint64) -> float:
    """Return the key's number in [0, 1)."""
    return np.float64(mix(key) >> np.uint64(11)) * _TO_UNIT


@kernel
def uniforms(key: np.uint64, first: int, stop: int) -> Floats:
    """Return the numbers in [0, 1) of a key's children from `first` up to `stop`."""
    draws = np.empty(stop - first)
    for i in range(first, stop):
        draws[i - first] = uniform(child(key, i))
    return draws


@leaf
def open_uniform(key: np.uint64) -> float:
    """Return the key's number in (0, 1], for logarithms."""
    return (np.float64(mix(key) >> np.uint64(11)) + 1.0) * _TO_UNIT


@leaf
def below(key: np.uint64, n: int) -> int:
    """Return the key's whole number in 0..n-1."""
    return int(uniform(key) * n)


@leaf
def normal(key: np.uint64) -> float:
    """Return the key's standard normal number (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(open_uniform(child(key, 0))))
    return radius * np.cos(2.0 * np.pi * uniform(child(key, 1)))  # type: ignore[no-any-return]


@leaf
def gumbel(key: np.uint64) -> float:
    """Return the key's standard Gumbel number: the largest of score + gumbel samples a softmax."""
    return -np.log(-np.log(open_uniform(key) * (1.0 - 2.0**-53)))  # type: ignore[no-any-return]


def trial_key(seed: int, trial: int) -> np.uint64:
    """Return the key of a trial, the root of all its draws. A seed is a 64-bit whole number."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not -(2**63) <= seed < 2**63:
        raise ParameterError(f"seed must be a whole number of at most 63 bits, not {seed!r}")
    return np.uint64(child(np.uint64(child(np.uint64(0), seed)), trial))
