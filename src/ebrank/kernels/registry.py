"""Plain functions that compiled code may call, without importing the compiler, which is slow.

A module of formulas ends in `register(__name__)`. Its functions stay plain functions of numbers or
arrays; `kernels.compiled` makes the same ones callable from kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType

_modules: list[str] = []
_listeners: list[Callable[[FunctionType], object]] = []


def register(module: str) -> None:
    """Make the functions that a module defines callable from kernels."""
    _modules.append(module)
    for listener in _listeners:
        _tell(listener, module)


def listen(listener: Callable[[FunctionType], object]) -> None:
    """Call the compiler's function with each registered function, past and future."""
    _listeners.append(listener)
    for module in _modules:
        _tell(listener, module)


def _tell(listener: Callable[[FunctionType], object], module: str) -> None:
    for value in list(vars(sys.modules[module]).values()):
        if isinstance(value, FunctionType) and value.__module__ == module:
            listener(value)
