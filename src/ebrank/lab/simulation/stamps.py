"""What makes a stored trial stale: ebrank itself, versions, rankers, users and data.

A trial is found again only while all of it is unchanged: all of ebrank that can affect one and the
versions of Python and of the libraries (`kernels.provenance`), and for rankers and users their
state and the files they come from (`stamp`).
"""

from __future__ import annotations

import dataclasses
import io
import os
import pickle
import platform
from types import FunctionType
from typing import Any

import numpy as np
import xxhash

import ebrank
from ebrank.kernels.provenance import hashed, libraries, package_stamp, plugin_digests


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    return {
        "ebrank": ebrank.__version__,
        "python": platform.python_version(),
        **libraries(),
        "source": package_stamp(),
    }


def stamp(*things: object) -> str:
    """Return a hash of rankers or users, of the files of their code, and of ebrank itself.

    If it could not be the same in another process, it never recurs, so that nothing is mistaken
    for something else.
    """
    return lasting_stamp(*things) or os.urandom(8).hex()


def lasting_stamp(*things: object) -> str | None:
    """Return the same stamp; None for code that is in no file, or state that cannot be pickled."""
    content = io.BytesIO()
    pickler = _Pickler(content)
    try:
        pickler.dump(things)
    except Exception:  # a lock, an open file, a function made at run time
        return None
    parts = plugin_digests(pickler.modules)
    if parts is None:
        return None
    return hashed([package_stamp(), xxhash.xxh3_128_hexdigest(content.getvalue()), *parts])[:16]


class _Pickler(pickle.Pickler):
    """Pickles state, the same in every process, and records the modules of all code it meets."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=4)
        self.fast = True  # equal values give equal bytes, whether or not they are one object
        self.modules: set[str] = set()

    def reducer_override(self, thing: Any) -> Any:  # noqa: ANN401 (anything at all)
        """Note where something is defined; pickle it as usual."""
        if isinstance(thing, FunctionType):
            self.modules.add(thing.__module__)
        else:
            kind = thing if isinstance(thing, type) else type(thing)
            self.modules |= {base.__module__ for base in kind.__mro__}
        return NotImplemented


def fingerprint(dataset: Any) -> str:  # noqa: ANN401 (a dataset, of which we know only this)
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
