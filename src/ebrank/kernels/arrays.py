"""Helpers for NumPy arrays."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


def read_only(array: Array) -> Array:
    """Return a read-only view, so that kernels are not compiled again for writable arrays."""
    view = array.view(np.ndarray)
    view.flags.writeable = False
    return cast(Array, view)
