"""What made a result: one stamp of code, constants and data.

Machine code on disk and stored trials are used only while everything behind them is unchanged.
`trace` follows a function, a class or an object through everything it can run or read:

- a function's bytecode, constants, default arguments, what it closes over, the globals it names;
- functions, partials, methods, properties, classes and their bases, and what those name in turn;
- values: numbers, text, containers, NumPy scalars and arrays, dataclasses and other objects;
- the files of all modules met on the way, and of the modules these import, directly or not.

Values show a change within this process (`helper.K = 5`). Files show one between two processes,
and also what no value shows, such as an import inside a function or the order of a tuple's fields.

>>> def scorer(rate):
...     return lambda clicks: rate * clicks
>>> trace(scorer(2.0)).values == trace(scorer(3.0)).values
False

For ebrank's own code only the files count: nobody changes it while it runs. For installed packages
only the version counts, except for the package that contains the traced thing. Files read as data,
and modules whose names are computed at run time, do not count.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Iterable
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

import numpy as np
import xxhash

import ebrank
from ebrank.provenance.files import digests
from ebrank.provenance.values import Walk

if TYPE_CHECKING:
    from ebrank.data.dataset import Dataset

ROOT = Path(ebrank.__file__).parent
UNRELATED = ("cli", "client", "data", "experiments", "report", "service")
"""Parts of ebrank that do not affect a trial, given its dataset and config."""


class Trace:
    """Everything that some things depend on.

    Attributes:
        values: hash of code and constants as they are in this process, without files.
        functions: Python functions met that are neither ebrank's nor another package's.
        circular: whether the first of the things refers to itself, directly or not.
    """

    def __init__(self, walk: Walk) -> None:
        self.values: str = walk.digest
        self.functions: list[FunctionType] = walk.functions
        self.circular: bool = walk.circular
        self._walk = walk

    @cached_property
    def files(self) -> dict[str, str]:
        """Hashes of the files of all modules met, and of those they import, by module."""
        return digests(self._walk.modules, self._walk.own)

    @cached_property
    def stamp(self) -> str:
        """Hash of code, constants and files, the same in every process while none changes."""
        return _hash([self.values, *(f"{name} {self.files[name]}" for name in sorted(self.files))])

    @property
    def lasting(self) -> bool:
        """Whether the stamp covers everything: no code was typed at a prompt or is unreadable."""
        return self._walk.whole and all(name in self.files for name in self._walk.modules)


def trace(*things: object) -> Trace:
    """Follow some things through everything they can run or read."""
    return Trace(Walk(things))


def stamp(*things: object) -> str:
    """Return a hash of everything that some things, and ebrank itself, can run or read.

    If a trace does not last, the hash never recurs, so that nothing is mistaken for something else.
    """
    traced = trace(*things)
    unique = "" if traced.lasting else os.urandom(16).hex()
    return _hash([package_stamp(), traced.stamp, unique])[:16]


@cache
def package_stamp() -> str:
    """Return a hash of what decides a trial: parts of ebrank, libraries, and Python's version."""
    parts = [".".join(platform.python_version_tuple()[:2]), *libraries().values()]
    for path in sorted(ROOT.rglob("*.py")):
        place = path.relative_to(ROOT)
        if place.parts[0] not in UNRELATED:
            parts.append(f"{place.as_posix()} {xxhash.xxh3_128_hexdigest(path.read_bytes())}")
    return _hash(parts)[:16]


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    return {
        "ebrank": ebrank.__version__,
        "python": platform.python_version(),
        **libraries(),
        "source": package_stamp(),
    }


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that decide a trial; SciPy and Numba load slowly."""
    slow = {name: metadata.version(name) for name in ("scipy", "numba")}
    return {"numpy": np.__version__, **slow}


def fingerprint(dataset: Dataset) -> str:
    """Return a hash of a dataset's content; its name does not matter.

    >>> fingerprint(ebrank.load("mq2007-like", scale=0.01)) == fingerprint(
    ...     ebrank.load("mq2007-like", scale=0.01))
    True
    """
    state = xxhash.xxh3_128()
    for field in dataclasses.fields(dataset):
        value = getattr(dataset, field.name)
        if isinstance(value, np.ndarray):
            state.update(f"{field.name} {value.dtype.str} {value.shape};".encode())
            state.update(np.ascontiguousarray(value).data.cast("B"))
    state.update(f"max_label {dataset.max_label}".encode())
    return state.hexdigest()


def _hash(parts: Iterable[str]) -> str:
    return xxhash.xxh3_128_hexdigest("\0".join(parts).encode())
