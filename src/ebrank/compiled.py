"""Compile kernels with Numba from the same plain functions that NumPy broadcasts.

`equations` and `special` are written as plain functions. Importing this module makes them callable
from compiled code too, so a formula exists once. `kernel` compiles a function without the GIL and
caches the machine code under `paths.kernel_cache()`. A cached kernel is used only while the sources
of *everything it can reach* are unchanged; Numba's own cache looks at the kernel's file alone and
would go on serving an old equation after an upgrade.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import caching, sigutils
from numba.core.ccallback import CFunc
from numba.extending import register_jitable

from ebrank import equations, paths, special
from ebrank.evidence import sums

F = TypeVar("F", bound=Callable[..., object])

_FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_LEAF = {**_FAST, "forceinline": True, "_nrt": False, "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile `function` on first call: no GIL, NumPy's division, cached machine code.

    Sums may be reassociated so that they use the processor's vector units; the result is still the
    same for any number of threads, since each block is summed by one of them.
    """
    dispatcher = numba.njit(**_FAST)(function)
    dispatcher._cache = _KernelCache(function)
    return cast(F, dispatcher)


def leaf(function: F) -> F:
    """Compile a small function that kernels call in their inner loops.

    It is always inlined and allocates nothing, so arrays are handed to it without counting
    references: atomic counters that all threads share would cost more than the work itself.
    """
    return cast(F, numba.njit(**_LEAF)(function))


def inner(function: F) -> F:
    """Compile a `leaf` that only kernels call, never Python: it compiles in half the time."""
    return cast(F, numba.njit(**_LEAF, no_cpython_wrapper=True)(function))


class FirstClass:
    """A plain function that kernels can be handed as an argument.

    A kernel that takes it is compiled once for the signature, not once for each function: adding a
    formula costs a fraction of a second of compilation. It is compiled when first handed over.
    """

    def __init__(self, function: Callable[..., Any], signature: str) -> None:
        self.function = function
        self._signature = signature

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401 (whatever the function takes)
        """Call the plain function."""
        return self.function(*args)

    @cached_property
    def compiled(self) -> Any:  # noqa: ANN401 (Numba's own type)
        """The compiled function, for passing to kernels."""
        arguments, returned = sigutils.normalize_signature(self._signature)
        callback: Any = CFunc(self.function, (arguments, returned), {}, {"error_model": "numpy"})
        callback._cache = _KernelCache(self.function)
        callback.compile()
        return callback


def share(module: ModuleType, without: Callable[..., object] | None = None) -> None:
    """Make the plain functions of `module` callable from kernels."""
    for function in vars(module).values():
        own = isinstance(function, FunctionType) and function.__module__ == module.__name__
        if own and function is not without:
            shared(function)


def shared(function: F) -> F:
    """Make one plain function callable from kernels, which inline it; it stays a plain function."""
    return cast(F, register_jitable(error_model="numpy", forceinline=True)(function))


class _KernelLocator(caching._CacheLocator):
    """Keeps machine code in ebrank's cache folder, stamped by the sources it was made from."""

    def __init__(self, function: FunctionType, source: str) -> None:
        self._function = function
        self._subfolder = self.get_suitable_cache_subpath(source)

    def get_cache_path(self) -> str:
        return str(paths.kernel_cache() / self._subfolder)

    def get_source_stamp(self) -> str:
        return source_stamp(self._function)

    def get_disambiguator(self) -> str:
        return str(self._function.__code__.co_firstlineno)

    @classmethod
    def from_function(cls, function: FunctionType, source: str) -> _KernelLocator | None:
        if function.__module__ not in sys.modules or not Path(source).is_file():
            return None  # typed at a prompt: another process could not load it
        locator = cls(function, source)
        try:
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator


class _KernelCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = (_KernelLocator,)


class _FunctionCache(caching.FunctionCache):
    _impl_class = _KernelCacheImpl

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        # Numba compares versions before, but stamps after unpickling an index, which fails where a
        # type that it names is gone by now; so the stamp is made part of the version.
        self._cache_file._version += source_stamp(function)


class _KernelCache(caching._Cache):
    """A function cache opened on first use, when all that the kernel calls has been defined."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function
        self._opened: caching._Cache | None = None

    def _cache(self) -> caching._Cache:
        if self._opened is None:
            try:
                self._opened = _FunctionCache(self._function)
            except RuntimeError:  # nowhere to write: compile anew each time
                self._opened = caching.NullCache()
        return self._opened

    @property
    def cache_path(self) -> str | None:
        return cast("str | None", self._cache().cache_path)

    def load_overload(self, sig: object, target_context: object) -> object:
        return self._cache().load_overload(sig, target_context)

    def save_overload(self, sig: object, data: object) -> None:
        self._cache().save_overload(sig, data)

    def enable(self) -> None:
        self._cache().enable()

    def disable(self) -> None:
        self._cache().disable()

    def flush(self) -> None:
        self._cache().flush()


def source_stamp(function: Callable[..., object]) -> str:
    """Return a hash of the sources that `function` may depend on, and of its own code.

    These are the files, installed packages' left out, that its module can reach by what it
    imports: an edit anywhere there compiles anew. That is more often than needed, but a constant or
    the order of a tuple's fields, which no function's text shows, can never be out of date.
    """
    function = getattr(function, "py_func", function)
    parts = [_module_stamp(__name__), _module_stamp(function.__module__), *_own_code(function)]
    return _hash(parts)


@cache
def _module_stamp(name: str) -> str:
    """Return a hash of the sources that a module can reach; "" if there is no such module."""
    module = sys.modules.get(name)
    if module is None:
        return ""
    modules = _reachable(module, {})
    return _hash(_text(modules[name]) for name in sorted(modules))


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _reachable(module: ModuleType, found: dict[str, ModuleType]) -> dict[str, ModuleType]:
    """Return the modules whose names or things a module holds, without those of other projects."""
    found[module.__name__] = module
    if hasattr(module, "__path__"):  # a package holds whatever happens to be imported by now
        return found
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else _home(value)
        other = sys.modules.get(name)
        if other is not None and name not in found and _is_source(other):
            _reachable(other, found)
    return found


@cache
def _is_source(module: ModuleType) -> bool:
    """Return whether a module is ebrank's or a user's own, not one that was installed."""
    if module.__name__.partition(".")[0] == __name__.partition(".")[0]:
        return True
    file = getattr(module, "__file__", None) or ""
    installed = {
        sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib")
    }
    return file.endswith(".py") and not any(file.startswith(folder) for folder in installed)


def _home(value: object) -> str:
    home = getattr(value, "__module__", None)
    return home if isinstance(home, str) else ""


def _text(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):  # typed at a prompt
        return ""


def _own_code(function: Any) -> Iterator[str]:  # noqa: ANN401 (any callable)
    """Yield what a function, and those it closes over, are made of, whether or not in a file."""
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType):
        yield repr(function)
        return
    code = function.__code__
    yield f"{code.co_code.hex()} {code.co_names}"
    constants = [*code.co_consts, *(function.__globals__.get(name) for name in code.co_names)]
    for value in constants:
        if isinstance(value, int | float | str | np.generic):  # the rest has no lasting text
            yield repr(value)
    for cell in function.__closure__ or ():
        yield from _own_code(cell.cell_contents)


share(special, without=special.beta_quantile)
share(equations)
share(sums)
