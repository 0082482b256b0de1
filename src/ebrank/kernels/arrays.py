"""Helpers for NumPy arrays."""

from __future__ import annotations

import threading
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])

# NumPy reads the header of a stored array with Python's parser, and Python 3.11 may raise
# `SystemError` if two threads parse at once (https://github.com/python/cpython/issues/106905).
# Hold this while reading one.
header_lock = threading.Lock()


def read_only(array: Array) -> Array:
    """Return a read-only view, so that kernels are not compiled again for writable arrays."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return cast(Array, view)
