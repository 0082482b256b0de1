"""Compile kernels with Numba from the same plain functions that NumPy broadcasts.

Modules such as `equations` are written as plain functions and make them callable from compiled code
too (`kernels.registry`), so a formula exists once. `kernel` compiles a function without the GIL;
`FirstClass` compiles one that kernels take as an argument.

Machine code is cached on disk by Numba's `cache=True`, in a folder for each state of the sources
behind it (`provenance.module_stamp`), because Numba itself looks only at a function's own file: it
would use an old equation after an upgrade. Formulas are cached even if their parts are from
elsewhere. Kernels from elsewhere are compiled in every process: Numba would confuse two lambdas of
one line that differ in a constant. Two things are not left to Numba:

- It keeps one index for all signatures of a function, which two processes that compile at once may
  leave pointing to each other's code. So only one compiles at a time, and the others find its work.
- It numbers compiled functions from 1 in every process. We have seen code from disk call another
  function of the same name and number instead of its own: two closures of one factory are enough.
"""

from __future__ import annotations

import itertools
import os
import pickle
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast
from weakref import WeakSet

import numba
import xxhash
from numba.core import event
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable

from ebrank.environment import paths
from ebrank.errors import ParameterError
from ebrank.kernels import lanes, registry
from ebrank.kernels.provenance import is_own, module_stamp

F = TypeVar("F", bound=Callable[..., object])

_INLINED = {"error_model": "numpy", "forceinline": True}
_PART = {**_INLINED, "no_cfunc_wrapper": True, "no_cpython_wrapper": True}
_FAST = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_LEAF = {**_FAST, "forceinline": True, "_nrt": False, "no_cfunc_wrapper": True}
_UNUSED_DAYS = 30
"""Cached machine code unused for this many days is removed."""
_PATIENCE = 600.0
"""Seconds to wait for another process that is compiling the same code: the machine may be busy, and
two that compile at once may mix up their files."""
_DAMAGED = (OSError, EOFError, ValueError, pickle.UnpicklingError)


def kernel(function: F) -> F:
    """Compile `function` on first call: no GIL, NumPy's division, cached machine code.

    Sums may be reassociated to use the processor's vector units; the result is still the same for
    any number of threads, because one thread sums each block.
    """
    return _kernel(function, _FAST)


def exact(function: F) -> F:
    """Compile a `kernel` whose arithmetic is done as written: the same bits on every processor.

    That holds for +, −, ·, /, square roots and rounding. Functions such as exp come from the
    platform's library, which may round differently on another processor.
    """
    return _kernel(function, {"nogil": True, "error_model": "numpy"})


def leaf(function: F) -> F:
    """Compile a small function that kernels call in their inner loops.

    It is always inlined and allocates nothing, so arrays are passed to it without counting
    references: atomic counters that all threads share would cost more than the work itself.
    """
    compiled = numba.njit(**_LEAF)(function)
    _QUICK.add(compiled)
    return cast(F, compiled)


def inner(function: F) -> F:
    """Compile a `leaf` that only kernels call: it compiles in half the time.

    Called from Python it would crash; tests make a kernel of it first.
    """
    return cast(F, numba.njit(**_LEAF, no_cpython_wrapper=True)(function))


_QUICK: WeakSet[Any] = WeakSet()
"""Functions too quick to compile to be worth caching."""


class FirstClass:
    """A plain function that kernels can take as an argument.

    A kernel that takes it is compiled once for the signature, not once for each function: adding a
    formula costs a fraction of a second of compilation. Constants that the function reads are those
    of the first use, as in everything that Numba compiles.

    Args:
        function: the function to compile.
        signature: its signature for kernels, as Numba writes it.
        made_of: what a composed function, which is in no file, consists of: its text and parts.
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
        self._compiled: Any = None

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Leave out the compiled function: it follows from the rest."""
        return FirstClass, (self.function, self._signature, self._made_of)

    @property
    def compiled(self) -> Any:  # noqa: ANN401 (Numba's own type)
        """The compiled function, for passing to kernels; compiled on first use."""
        if self._compiled is None:
            with _COMPILING:
                try:
                    self._compiled = self._compiled or self._compile()
                except Exception as problem:
                    name = self.function.__name__
                    message = f"{name} cannot be compiled: {_reason(problem)}"
                    raise ParameterError(message) from problem
        return self._compiled

    def _compile(self) -> Any:  # noqa: ANN401
        """Compile a function that calls the plain one; its name, under which it is cached, tells
        what it is made of."""
        function: Any = getattr(self.function, "py_func", self.function)
        code, parts = function.__code__, self._made_of or (function,)
        functions = [part for part in parts if callable(part)]
        used = (function.__globals__.get(name) for name in code.co_names)
        named = [value for value in used if hasattr(value, "__module__")]
        modules = sorted({str(value.__module__) for value in (*functions, *named)})
        described = repr([self._signature, *(_description(part) for part in parts)])
        name = f"compiled_{xxhash.xxh3_64_hexdigest(described.encode())}"
        named_code = code.replace(co_name=name, co_qualname=name, co_filename=__file__)
        renamed = FunctionType(
            named_code, self._globals(function), name, None, function.__closure__
        )
        plain = all(map(_is_plain, functions))
        folder = _folder(f"{code.co_name}s", *modules) if plain else None
        if folder is not None:
            cached = numba.cfunc(self._signature, error_model="numpy", cache=True)
            for _ in range(2):
                with (
                    suppress(*_DAMAGED),
                    global_compiler_lock,
                    _cached_in(folder),
                    _turn(folder, name),
                ):
                    return cached(renamed)
                shutil.rmtree(folder, ignore_errors=True)  # it cannot be read, or the disk is full
        return numba.cfunc(self._signature, error_model="numpy")(renamed)

    def _globals(self, function: FunctionType) -> dict[str, Any]:
        """Return what the function may name, with its parts, plain functions, compiled."""
        parts = {id(part) for part in self._made_of if isinstance(part, FunctionType)}
        return {
            name: numba.njit(**_PART)(value) if id(value) in parts else value
            for name, value in function.__globals__.items()
        }


_COMPILING = threading.RLock()


def _reason(problem: Exception) -> str:
    """Return one line on why something cannot be compiled; Numba's innermost reason is last.

    If compiled code calls a plain function, it says what to do.
    """
    plain = re.sub(r"\x1b\[[\d;]*m", "", str(problem))  # colored where colorama is installed
    inner_problem = plain.rpartition("(step: nopython frontend)")[2].strip()
    reason = inner_problem.partition("\n")[0] or type(problem).__name__
    if "Cannot determine Numba type of <class 'function'>" in plain:
        reason += ". Decorate the function that it calls with @numba.njit."
    return reason


class _Compilation(event.Listener):
    """Calls a function once, when something is compiled; loading machine code is not compiling.

    What a quick function is made of is compiled as quickly.
    """

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell: Callable[[], None] | None = tell
        self._quick = 0

    def on_start(self, event: event.Event) -> None:
        """Call it the first time."""
        self._quick += event.data["dispatcher"] in _QUICK
        if not self._quick:
            tell, self._tell = self._tell, None
            if tell is not None:
                tell()

    def on_end(self, event: event.Event) -> None:
        """Leave a quick function."""
        self._quick -= event.data["dispatcher"] in _QUICK


@contextmanager
def announced(tell: Callable[[], None]) -> Iterator[None]:
    """Call a function as soon as the code inside, in any thread, has to wait for the compiler."""
    with event.install_listener("numba:compile", _Compilation(tell)):
        yield


# --- machine code on disk ------------------------------------------------------------------------


def _kernel(function: F, options: dict[str, Any]) -> F:
    """Compile a function on first call; cache the machine code if it is one of ebrank's own."""
    home = str(function.__module__)
    folder = _folder(home, home) if is_own(home) and _is_plain(function) else None
    if folder is None:
        return cast(F, numba.njit(**options)(function))
    with _cached_in(folder):
        dispatcher = numba.njit(cache=True, **options)(function)
    compile_now = dispatcher.compile

    def compile_once(signature: object) -> object:
        # Numba's lock comes first: who holds it may need this kernel for one of their own.
        with global_compiler_lock, _turn(folder, function.__qualname__):
            try:
                return compile_now(signature)
            except _DAMAGED:  # files that cannot be read, or no space for new ones
                shutil.rmtree(dispatcher.stats.cache_path, ignore_errors=True)
                Path(dispatcher.stats.cache_path).mkdir(parents=True, exist_ok=True)
                return compile_now(signature)

    dispatcher.compile = compile_once
    return cast(F, dispatcher)


def _is_plain(function: Any) -> bool:  # noqa: ANN401
    """Return whether source text and captured numbers identify a function."""
    return all(isinstance(value, int | float | str) for value in _closure(function))


def _closure(function: Any) -> list[object]:  # noqa: ANN401
    plain = getattr(function, "py_func", function)
    return [cell.cell_contents for cell in plain.__closure__ or ()]


def _description(part: Any) -> object:  # noqa: ANN401
    """Return what identifies a part of a function; its source files are hashed elsewhere."""
    if not callable(part):
        return part
    code: Any = getattr(part, "py_func", part).__code__
    where = part.__module__, part.__qualname__, code.co_firstlineno
    return *where, code.co_code.hex(), repr(code.co_consts), _closure(part)


def _folder(label: str, *modules: str) -> Path | None:
    """Return the folder of machine code from some modules; None if nothing can be cached."""
    stamp = module_stamp(*modules)
    if stamp is None:
        return None
    folder = paths.kernel_cache() / f"{label}-{stamp}"
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _remove_unused(folder.parent)
        os.utime(folder)  # it is in use
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def _remove_unused(root: Path) -> None:
    """Remove cached machine code that has not been used for a long time."""
    oldest = time.time() - _UNUSED_DAYS * 86400
    for folder in root.iterdir():
        with suppress(OSError):
            if folder.is_dir() and folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cached_in(folder: Path) -> Iterator[None]:
    """Have Numba cache the functions decorated meanwhile in a folder, as NUMBA_CACHE_DIR would."""
    with _DECORATING:
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
        try:
            yield
        finally:
            numba.config.CACHE_DIR = before


_DECORATING = threading.RLock()


@contextmanager
def _turn(folder: Path, name: str) -> Iterator[None]:
    """Hold a lock file while compiling: other processes wait, then load the code from disk.

    Nobody waits for ever: a process that compiles may have been stopped.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # not on Windows, nor on every file system
            import fcntl

            file = stack.enter_context((folder / f"{name}.lock").open("a"))
            deadline = time.monotonic() + _PATIENCE
            while time.monotonic() < deadline:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                time.sleep(0.02)
        yield


def _number_functions_apart() -> None:
    """Make sure that no two processes give their compiled functions the same names."""
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


_number_functions_apart()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_number_functions_apart)

# Its sums are added as written; those of other plain functions as the kernel's are.
register_jitable(**_INLINED, fastmath={"contract"})(lanes.exp_below_one)
registry.listen(register_jitable(**_INLINED))
