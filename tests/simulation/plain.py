"""The random streams in plain Python, and a way to run compiled formulas as plain Python too.

Written from the description of SplitMix64 alone; `tests/test_streams.py` compares both.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from ebrank import streams as compiled_streams
from ebrank.formula import Formula, Score, Source, loaded

QUERIES, ARRIVALS, USERS, TIES, RANKER, WEIGHTS = 1, 2, 3, 4, 5, 6

BITS = 2**64


def mix(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % BITS
    return z ^ (z >> 31)


def child(key: int, index: int) -> int:
    return mix((key + 0x9E3779B97F4A7C15 * (index + 1)) % BITS)


def uniform(key: int) -> float:
    return (mix(key) >> 11) / 2**53


def open_uniform(key: int) -> float:
    return ((mix(key) >> 11) + 1) / 2**53


def below(key: int, n: int) -> int:
    return math.floor(uniform(key) * n)


def normal(key: int) -> float:
    radius = math.sqrt(-2 * math.log(open_uniform(child(key, 0))))
    return radius * math.cos(2 * math.pi * uniform(child(key, 1)))


def gumbel(key: int) -> float:
    return -math.log(-math.log(open_uniform(key) * (1 - 2**-53)))


def trial_key(seed: int, trial: int) -> int:
    return child(child(0, seed), trial)


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with everything compiled that it calls replaced by plain Python.

    Its text stays the same; `streams` becomes this module, whose keys are Python's whole numbers.
    """
    text = getattr(function, "py_func", function)
    names = dict(text.__globals__)
    for name in text.__code__.co_names:
        if names.get(name) is compiled_streams:
            names[name] = PLAIN_STREAMS
        elif hasattr(names.get(name), "py_func"):
            names[name] = plain(names[name])
    return types.FunctionType(text.__code__, names, text.__name__, text.__defaults__)


def plain_score(score: Score) -> Callable[..., float]:
    """Return a score as a function of an item's quantities by name, run as plain Python."""
    formula = score.formula
    given = {name: _plain_source(source) for name, source in formula.given.items()}
    slow = Formula(plain(loaded(formula.function)), given=given)
    parameters = dict(zip(formula.parameters, score.parameters.tolist(), strict=False))
    return lambda **quantities: float(slow(**parameters, **quantities))


def _plain_source(source: Source) -> Source:
    """Return where a quantity comes from, as plain Python if that is a function."""
    if isinstance(source, str) and ":" in source:
        return plain(loaded(source))
    return plain(source) if callable(source) else source


PLAIN_STREAMS = types.SimpleNamespace(**globals())
