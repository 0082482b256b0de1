"""Plain functions that compiled code may call, without importing the compiler, which is slow.

A module of formulas ends in `share(__name__)`. Its functions stay plain functions of numbers or
arrays; `kernels.compiled` makes the same ones callable from kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType

_modules: list[str] = []
_listeners: list[Callable[[FunctionType], object]] = []


def share(module: str) -> None:
    """Make the functions that a module defines callable from kernels."""
    _modules.append(module)
    for listener in _listeners:
        for function in _functions(module):
            listener(function)


def listen(listener: Callable[[FunctionType], object]) -> None:
    """Call the compiler's function with each shared function, past and future."""
    _listeners.append(listener)
    for module in _modules:
        for function in _functions(module):
            listener(function)


def _functions(module: str) -> Iterator[FunctionType]:
    for value in list(vars(sys.modules[module]).values()):
        if isinstance(value, FunctionType) and value.__module__ == module:
            yield value
