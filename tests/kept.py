"""Small compiled functions that tests call from Python."""

from __future__ import annotations

from typing import Any

from ebrank.kernels.compiled import kernel


def kept(leaf: Any) -> Any:  # noqa: ANN401 (Numba's own type)
    """Return a `leaf` as a kernel: its machine code is kept, not made anew in every process."""
    return kernel(leaf.py_func)
