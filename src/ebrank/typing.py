"""Names of the array types that the whole package uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Keys: TypeAlias = npt.NDArray[np.uint64]
SmallInts: TypeAlias = npt.NDArray[np.int32]
"""Half the bytes of `Ints`, for loops that wait for memory."""
Features: TypeAlias = npt.NDArray[np.float32]
"""Features of items, shape (rows, features)."""
Compiled: TypeAlias = Callable[..., Any]
"""A compiled function that a kernel takes as an argument."""
Labels: TypeAlias = npt.NDArray[np.int8]
"""Relevance labels, and other numbers of one byte."""
Texts: TypeAlias = npt.NDArray[np.str_]
State: TypeAlias = Mapping[str, Floats]
"""What a prior has learned: plain arrays by name."""
