"""Compile kernels with Numba from the same plain functions that NumPy broadcasts.

`equations` and `special` are written as plain functions. Importing this module makes them callable
from compiled code too, so a formula exists once. `kernel` compiles a function without the GIL;
`FirstClass` compiles one that kernels take as an argument.

Machine code is cached on disk under `paths.kernel_cache()`, in a folder for each state of the code
behind it: sources, constants, what a function closes over (`ebrank.provenance`), the processor and
Numba's version. Numba's own cache looks only at a function's file and bytecode. It would use an old
equation after an upgrade, and confuse two closures.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import secrets
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

import llvmlite.binding
import numba
import xxhash
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable

from ebrank import equations, lanes, paths, special
from ebrank.evidence import sums
from ebrank.provenance import Trace, trace

F = TypeVar("F", bound=Callable[..., object])

_SHARED = {"error_model": "numpy", "forceinline": True}
_PART = {**_SHARED, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
_FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_LEAF = {**_FAST, "forceinline": True, "_nrt": False, "no_cfunc_wrapper": True}
_UNUSED_DAYS = 30
"""Machine code that nobody has used for this many days is removed."""
_PATIENCE = 120.0
"""Seconds to wait for another process that compiles the same."""
_EMPTY = "def compiled(): ...\n"


def kernel(function: F) -> F:
    """Compile `function` on first call: no GIL, NumPy's division, cached machine code.

    Sums may be reassociated to use the processor's vector units; the result is still the same for
    any number of threads, because one thread sums each block.
    """
    return _kept(numba.njit(**_FAST)(function), function)


def exact(function: F) -> F:
    """Compile a `kernel` whose arithmetic is done as written: the same bits on every processor.

    That holds for +, −, ·, /, square roots and rounding. Functions such as exp come from the
    platform's library, which may round differently on another processor.
    """
    return _kept(numba.njit(nogil=True, error_model="numpy")(function), function)


def leaf(function: F) -> F:
    """Compile a small function that kernels call in their inner loops.

    It is always inlined and allocates nothing, so arrays are passed to it without counting
    references: atomic counters that all threads share would cost more than the work itself.
    """
    return cast(F, numba.njit(**_LEAF)(function))


def inner(function: F) -> F:
    """Compile a `leaf` that only kernels call: it compiles in half the time.

    Called from Python it would crash; tests make a kernel of it first.
    """
    return cast(F, numba.njit(**_LEAF, no_cpython_wrapper=True)(function))


def share(module: ModuleType, without: Collection[Callable[..., object]] = ()) -> None:
    """Make the plain functions of `module` callable from kernels."""
    for function in vars(module).values():
        own = isinstance(function, FunctionType) and function.__module__ == module.__name__
        if own and function not in without:
            shared(function)


def shared(function: F, *, as_written: bool = False) -> F:
    """Make a plain function callable from kernels, which inline it; it stays a plain function.

    Its sums are reassociated if the kernel's are, unless `as_written`.
    """
    if function not in _CALLABLE:
        options = {**_SHARED, "fastmath": {"contract"}} if as_written else _SHARED
        register_jitable(**options)(function)
        _CALLABLE.add(function)
    return function


_CALLABLE: WeakSet[Callable[..., object]] = WeakSet()


class FirstClass:
    """A plain function that kernels can take as an argument.

    A kernel that takes it is compiled once for the signature, not once for each function: adding a
    formula costs a fraction of a second of compilation.

    Args:
        function: the function to compile.
        signature: its signature for kernels, as Numba writes it.
        made_of: the parts of a composed function, which is in no file.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signature: str,
        made_of: Sequence[object] = (),
    ) -> None:
        self.function = function
        self._signature = signature
        self._made_of = tuple(made_of)
        self._values = ""
        self._lasting = False
        self._compiled: Any = None

    def __call__(self, *args: Any) -> Any:  # noqa: ANN401 (whatever the function takes)
        """Call the plain function."""
        return self.function(*args)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Leave out the compiled function: it follows from the rest."""
        return FirstClass, (self.function, self._signature, self._made_of)

    @property
    def compiled(self) -> Any:  # noqa: ANN401 (Numba's own type)
        """The compiled function, for passing to kernels.

        It is compiled on first use, and again if a constant that it reads has changed since.
        Functions that it calls keep the constants they were first compiled with, as Numba's do.
        Nobody changes ebrank's own code while it runs, so that is not looked at again.
        """
        if self._lasting:
            return self._compiled
        traced = trace(*(self._made_of or (self.function,)))
        with _COMPILING:
            if traced.values != self._values:
                self._compiled = self._compile(traced)
                self._values = traced.values
            self._lasting = not traced.functions
            return self._compiled

    def _compile(self, traced: Trace) -> Any:  # noqa: ANN401
        function: Any = getattr(self.function, "py_func", self.function)
        code = function.__code__
        arguments = ", ".join(code.co_varnames[: code.co_argcount])
        text = f"def compiled({arguments}):\n    return function({arguments})\n"
        names = {"__name__": __name__, "function": numba.njit(**_PART)(self._anew(function))}
        with suppress(Exception):  # the cache does not work; any other error will recur
            folder = _folder(function, traced)
            if folder is not None:
                path = _written(folder, f"{self._signature}\n{text}", text)
                keep = numba.cfunc(self._signature, error_model="numpy", cache=True)
                with _turn(path):
                    return keep(_defined(text, path, names))
        return numba.cfunc(self._signature, error_model="numpy")(_defined(text, None, names))

    def _anew(self, function: FunctionType) -> FunctionType:
        """Return the function with its parts to be compiled again: they may read new constants."""
        if not self._made_of:
            return function
        names = {
            name: numba.njit(**_PART)(value)
            if isinstance(value, FunctionType) and any(value is part for part in self._made_of)
            else value
            for name, value in function.__globals__.items()
        }
        return FunctionType(function.__code__, names, function.__name__)


_COMPILING = threading.RLock()


def is_kernel(dispatcher: object) -> bool:
    """Return whether Numba's dispatcher is a kernel's, which takes a while to compile."""
    return isinstance(getattr(dispatcher, "_cache", None), _KernelCache)


# --- machine code on disk ------------------------------------------------------------------------


def _kept(dispatcher: Any, function: F) -> F:  # noqa: ANN401 (Numba's own type)
    """Have Numba cache a dispatcher's machine code where `_KernelCache` says.

    The public way, `cache=True`, looks for a folder when a function is defined. The functions that
    it calls may not be defined yet, so what the machine code depends on would be unknown.
    """
    dispatcher._cache = cache = _KernelCache(function)
    compile_now = dispatcher.compile

    def compile_once(signature: object) -> object:
        with global_compiler_lock, cache.turn(signature):
            return compile_now(signature)

    dispatcher.compile = compile_once
    return cast(F, dispatcher)


class _KernelCache:
    """Where Numba looks for machine code before it compiles, and stores it afterwards.

    Each signature has its own file in Numba's format. Numba would list all signatures in one index,
    which two processes that compile at once could leave pointing to each other's code.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = cast(FunctionType, function)
        self._enabled = True

    @property
    def cache_path(self) -> str | None:
        """Where machine code is cached; None if nowhere."""
        folder = _folder(self._function, trace(self._function))
        return None if folder is None else str(folder)

    def load_overload(self, signature: object, context: object) -> object:
        """Return the machine code for a signature; None if there is none."""
        files = self._files(signature)
        if files is None:
            return None
        try:
            return files.load_overload(signature, context)
        except Exception:  # damaged, or of a type that no longer exists
            with suppress(Exception):
                files.flush()
            return None

    def save_overload(self, signature: object, code: object) -> None:
        """Cache the machine code for a signature, if there is space."""
        files = self._files(signature)
        with suppress(OSError):
            if files is not None:
                files.save_overload(signature, code)

    def turn(self, signature: object) -> AbstractContextManager[object]:
        """Wait until no other process is compiling for this signature."""
        path = self._path(signature)
        return nullcontext() if path is None else _turn(path)

    def _files(self, signature: object) -> FunctionCache | None:
        """Return Numba's cache of one signature; None if nothing can be cached."""
        path = self._path(signature)
        with suppress(RuntimeError):  # it cannot be written
            return None if path is None else FunctionCache(_defined(_EMPTY, path, {}))
        return None

    def _path(self, signature: object) -> Path | None:
        """Return the file beside which Numba keeps machine code; None if nothing can be cached."""
        folder = _folder(self._function, trace(self._function)) if self._enabled else None
        with suppress(OSError):
            return None if folder is None else _written(folder, str(signature), _EMPTY)
        return None

    def enable(self) -> None:
        """Use the disk."""
        self._enabled = True

    def disable(self) -> None:
        """Leave the disk alone."""
        self._enabled = False

    def flush(self) -> None:
        """Clear the cache."""
        if self.cache_path is not None:
            shutil.rmtree(self.cache_path, ignore_errors=True)


def _folder(function: FunctionType, traced: Trace) -> Path | None:
    """Return the folder of a function's machine code; None if it cannot or must not be cached.

    It must not be if another process could not tell that it is the same function.
    """
    if not traced.lasting or not all(map(_is_settled, traced.functions)):
        return None
    key = xxhash.xxh3_128_hexdigest(f"{traced.stamp} {_machine()}".encode())
    label = re.sub(r"[^\w.]", "", f"{function.__module__}.{function.__qualname__}")[:80]
    folder = paths.kernel_cache() / f"{label}-{key}"
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_unused(folder.parent)
        os.utime(folder)  # it is in use
    except OSError:
        return None
    return folder


def _is_settled(function: FunctionType) -> bool:
    """Return whether a function's machine code can be reused later.

    It cannot if the function has changed since it was first traced, because it may have been
    compiled before that. Nor can it if the function calls itself: Numba 0.61 to 0.68 crash when
    they run such code from disk.
    """
    traced = trace(function)
    return not traced.circular and _first_met.setdefault(function, traced.values) == traced.values


_first_met: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()


@cache
def _machine() -> str:
    """Return what machine code depends on besides sources."""
    config = numba.config
    name = config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    features = config.CPU_FEATURES
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    options = config.OPT, config.BOUNDSCHECK, config.LOOP_VECTORIZE, config.SLP_VECTORIZE
    return f"{sys.platform} {platform.machine()} {name} {features} {options} {numba.__version__}"


def _written(folder: Path, key: str, text: str) -> Path:
    """Return a file with some text, named by a key; Numba keeps machine code beside it."""
    path = folder / f"{xxhash.xxh3_64_hexdigest(key.encode())}.py"
    if not path.is_file():
        temporary = path.with_suffix(f".{secrets.token_hex(8)}")
        temporary.write_text(text)
        os.utime(temporary, (0, 0))  # some versions of Numba compare times
        temporary.replace(path)
    return path


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Hold a lock file while compiling: who else needs the same code waits, and finds it on disk.

    Nobody waits for ever: at worst, two processes do the same work.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # not on Windows, nor on every file system
            import fcntl

            file = stack.enter_context(path.with_suffix(".lock").open("a"))
            deadline = time.monotonic() + _PATIENCE
            while time.monotonic() < deadline:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.02)
        yield


def _defined(text: str, path: Path | None, names: dict[str, Any]) -> FunctionType:
    """Return the function `compiled` that a text defines, as if imported from a file."""
    exec(compile(text, str(path or "<formula>"), "exec"), names)
    function: FunctionType = names["compiled"]
    return function


def _remove_unused(root: Path) -> None:
    """Remove machine code that nobody has used for a long time."""
    oldest = time.time() - _UNUSED_DAYS * 86400
    for folder in root.iterdir():
        with suppress(OSError):
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)


def _number_functions_apart() -> None:
    """Make sure that no two processes give their compiled functions the same names.

    Numba names machine code by module, function and a number that counts up from 1 in every
    process. We have seen code from disk call a function of the same name that was compiled in this
    process, instead of its own: two closures of one factory are enough.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_number_functions_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_functions_apart)


shared(lanes.exp_below_one, as_written=True)
share(special, without=[special.beta_quantile])
share(equations)
share(sums)
