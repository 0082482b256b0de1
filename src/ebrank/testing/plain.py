"""The random streams in plain Python, and a way to run compiled functions as plain Python too.

Written from the description of SplitMix64 alone, so that checks compare two programs. Keys are
Python's own whole numbers.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterator
from typing import Any

from ebrank.evidence.sums import ItemCounts
from ebrank.kernels import mixing, streams
from ebrank.model.formula import Formula, Score, Source, loaded

QUERIES, ARRIVALS, USERS, TIES, RANKER, WEIGHTS = 1, 2, 3, 4, 5, 6

BITS = 2**64


def mix(z: int) -> int:
    """Return SplitMix64's finalizer of z."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % BITS
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % BITS
    return z ^ (z >> 31)


def child(key: int, index: int) -> int:
    """Return the index-th number after key in SplitMix64's sequence."""
    return mix((key + 0x9E3779B97F4A7C15 * (index + 1)) % BITS)


def uniform(key: int) -> float:
    """Return a number in [0, 1)."""
    return (mix(key) >> 11) / 2**53


def open_uniform(key: int) -> float:
    """Return a number in (0, 1]."""
    return ((mix(key) >> 11) + 1) / 2**53


def below(key: int, n: int) -> int:
    """Return one of 0..n-1."""
    return math.floor(uniform(key) * n)


def normal(key: int) -> float:
    """Return a standard normal number, by Box and Muller."""
    radius = math.sqrt(-2 * math.log(open_uniform(child(key, 0))))
    return radius * math.cos(2 * math.pi * uniform(child(key, 1)))


def gumbel(key: int) -> float:
    """Return a standard Gumbel number."""
    return -math.log(-math.log(open_uniform(key) * (1 - 2**-53)))


def trial_key(seed: int, trial: int) -> int:
    """Return the key of a trial."""
    return child(child(0, seed), trial)


PLAIN_STREAMS = types.SimpleNamespace(**globals())


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with everything compiled that it calls replaced by plain Python.

    Its text stays the same; `ebrank.kernels.streams` becomes this module.
    """
    slow: Callable[..., Any] = _plain(function, {})
    return slow


def _plain(function: Any, done: dict[Any, Any]) -> Any:  # noqa: ANN401 (functions of any kind)
    text = getattr(function, "py_func", function)
    if text.__module__ in (streams.__name__, mixing.__name__):
        return getattr(PLAIN_STREAMS, text.__name__)
    if text in done:
        return done[text]
    names = dict(text.__globals__)
    slow = types.FunctionType(
        text.__code__, names, text.__name__, text.__defaults__, text.__closure__
    )
    done[text] = slow
    for name in _names(text.__code__):
        value: Any = names.get(name)
        if value is streams:
            names[name] = PLAIN_STREAMS
        elif hasattr(value, "py_func"):
            names[name] = _plain(value, done)
    return slow


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names that some code looks up, also from within comprehensions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def plain_score(score: Score) -> Callable[..., float]:
    """Return a score as a function of an item's quantities by name, run as plain Python."""
    formula = score.formula
    given = {name: _plain_source(source) for name, source in formula.given.items()}
    slow = Formula(plain(loaded(formula.function)), given=given)
    parameters = dict(zip(formula.parameters, score.parameters.tolist(), strict=False))

    def scored(**quantities: Any) -> float:  # noqa: ANN401 (numbers and sequences)
        raw = ItemCounts(*(quantities[name] for name in ItemCounts._fields))
        return float(slow(**parameters, **quantities, item_counts=raw))

    return scored


def _plain_source(source: Source) -> Source:
    """Return where a quantity comes from, as plain Python if that is a function."""
    if isinstance(source, str) and ":" in source:
        return plain(loaded(source))
    return plain(source) if callable(source) else source
