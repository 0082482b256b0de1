"""A hash of the content of functions, classes and objects in this process."""

from __future__ import annotations

import enum
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np
import xxhash

from ebrank.provenance.files import is_followed, is_ours

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
_BUILT_IN = (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
    np.ufunc,
)
_NO_CONTENT = {
    *("__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__"),
    *("__dict__", "__doc__", "__firstlineno__", "__module__", "__orig_bases__", "__parameters__"),
    *("__slotnames__", "__static_attributes__", "__weakref__", "_abc_impl"),
}
"""Attributes of classes that say nothing about what their objects do."""


class Walk:
    """A walk through everything that some things refer to.

    Attributes:
        digest: hash of everything met.
        functions: Python functions met that are neither ebrank's nor another package's.
        modules: names of the modules of code met, ebrank's and those followed.
        own: top packages of the things themselves.
        whole: whether everything could be read.
        circular: whether the first thing refers to itself, directly or not.

    Anything with an identity (a function, a class, an object) is numbered when first met and
    described later, so that circles end and depth does not matter. Plain containers are described
    wherever they occur: whether two equal tuples are one object is up to the interpreter.
    """

    def __init__(self, things: Iterable[object]) -> None:
        self.functions: list[FunctionType] = []
        self.modules: set[str] = set()
        self.whole = True
        self.circular = False
        self.own: frozenset[str] = frozenset(_tops(things))
        self._state = xxhash.xxh3_128()
        self._met: dict[int, int] = {}
        self._queue: list[Any] = []
        self._inside: set[int] = set()
        self._read: set[tuple[str, tuple[str, ...]]] = set()
        for thing in things:
            self._add(thing)
        for thing in self._queue:  # grows on the way
            self._describe(thing)
        self.digest = self._state.hexdigest()

    def _say(self, *words: object) -> None:
        text = " ".join(map(str, words))
        self._state.update(f"{len(text)}:{text}".encode())

    def _add(self, value: Any) -> None:  # noqa: ANN401 (anything at all)
        if type(value) in _ATOMS:
            self._say(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self._say("array", value.dtype.descr, value.shape)
            self._state.update(np.ascontiguousarray(value).tobytes())
        elif type(value) in (tuple, list, dict, MappingProxyType, set, frozenset, CodeType):
            self._add_container(value)
        else:
            number = self._met.setdefault(id(value), len(self._met))
            if number == len(self._queue):
                self._queue.append(value)  # also keeps its id from being reused
            elif number == 0:
                self.circular = True
            self._say("thing", number)

    def _add_container(self, value: Any) -> None:  # noqa: ANN401
        if id(value) in self._inside:
            self._say("itself")
            return
        self._inside.add(id(value))
        self._say(type(value).__name__)
        if isinstance(value, CodeType):
            self._add_code(value)
        elif isinstance(value, set | frozenset):
            self.whole &= all(map(_has_lasting_text, value))
            self._say(len(value), *sorted(map(repr, value)))
        else:
            mapping = isinstance(value, dict | MappingProxyType)
            parts = [part for item in value.items() for part in item] if mapping else value
            self._say(len(parts))
            for part in parts:
                self._add(part)
        self._inside.discard(id(value))

    def _add_code(self, code: CodeType) -> None:
        """Add code; its place and name do not matter."""
        self._say(
            *(code.co_code.hex(), code.co_exceptiontable.hex(), code.co_flags),
            *(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
            *(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        )
        self._add(code.co_consts)

    def _describe(self, thing: Any) -> None:  # noqa: ANN401
        if isinstance(getattr(thing, "py_func", None), FunctionType):  # compiled by Numba
            self._parts("compiled", thing.py_func, getattr(thing, "targetoptions", None))
        elif isinstance(thing, FunctionType):
            self._describe_function(thing)
        elif isinstance(thing, type):
            self._describe_class(thing)
        elif isinstance(thing, ModuleType):
            self._describe_module(thing)
        elif isinstance(thing, _BUILT_IN) or self._is_callable_of_others(thing):
            name = getattr(thing, "__qualname__", None) or thing.__name__
            self._parts("named", name, getattr(thing, "__self__", None))
            self._note_home(getattr(thing, "__module__", None) or "builtins")
        elif isinstance(thing, CellType):
            self._parts("cell", *_content_of(thing))
        elif isinstance(thing, MethodType):
            self._parts("method", thing.__func__, thing.__self__)
        elif isinstance(thing, staticmethod | classmethod):
            self._parts(type(thing).__name__, thing.__func__)
        elif isinstance(thing, property):
            self._parts("property", thing.fget, thing.fset, thing.fdel)
        elif isinstance(thing, cached_property):
            self._parts("cached property", thing.func)
        elif isinstance(thing, partial):
            self._parts("partial", thing.func, thing.args, thing.keywords)
        elif isinstance(thing, enum.Enum):
            self._parts("member", type(thing), thing.name)
        else:
            self._describe_object(thing)

    def _parts(self, kind: str, *parts: object) -> None:
        self._say(kind, len(parts))
        for part in parts:
            self._add(part)

    def _describe_function(self, function: FunctionType) -> None:
        home, called = function.__globals__.get("__name__"), function.__qualname__
        followed = self._note_home(home)
        named = "<" not in called and not function.__closure__  # neither a lambda nor made by one
        if named and not followed and not is_ours(str(home)):
            self._say("function", home, called)
            return
        self._parts(
            "function",
            function.__code__,
            function.__defaults__,
            function.__kwdefaults__,
            vars(function),
            *(function.__closure__ or ()),
        )
        if followed:
            self.functions.append(function)
            names = tuple(_names(function.__code__))
            for name in names:
                if name in function.__globals__:
                    self._say("global", name)
                    self._add_named(function.__globals__[name], names)

    def _add_named(self, value: object, names: tuple[str, ...]) -> None:
        """Add what a function names; of a module, what the function may read of it."""
        self._add(value)
        if not isinstance(value, ModuleType) or not self._is_followed(value.__name__):
            return
        if (value.__name__, names) in self._read:
            return
        self._read.add((value.__name__, names))
        for name in names:
            if name in vars(value):
                self._say("attribute", name)
                self._add_named(vars(value)[name], names)

    def _describe_class(self, cls: type) -> None:
        if not self._note_home(cls.__module__):
            self._say("class", cls.__module__, cls.__qualname__)
            return
        content = {k: v for k, v in vars(cls).items() if k not in _NO_CONTENT}
        if "_fields" in content and issubclass(cls, tuple):
            content.pop("__new__", None)  # generated from the fields, in no module
        self._parts("class", type(cls), cls.__bases__, content)

    def _describe_module(self, module: ModuleType) -> None:
        self._say("module", module.__name__)
        self._note_home(module.__name__)

    def _describe_object(self, thing: Any) -> None:  # noqa: ANN401
        """Describe an object by its class and state, as `pickle` would see it."""
        kind = type(thing)
        if hasattr(thing, "__wrapped__"):  # such as a cached function
            self._parts("wrapper", kind, thing.__wrapped__)
            return
        try:
            reduced = thing.__reduce_ex__(4)
        except Exception:  # a lock, an open file: nothing identifies it
            self.whole = False
            self._parts("opaque", kind)
            return
        if isinstance(reduced, str):
            self._parts("name", kind, reduced)
            return
        make, arguments, state, elements, items = (*reduced, None, None, None)[:5]
        if isinstance(state, dict):  # derived values, which may not be there yet
            state = {name: v for name, v in state.items() if not _is_derived(kind, name)}
        parts = (None if part is None else list(part) for part in (elements, items))
        self._parts("object", make, arguments, state, *parts)

    def _note_home(self, name: object) -> bool:
        """Record the module of some code; return whether it is followed further."""
        if not isinstance(name, str):  # created at run time
            self.whole = False
            return True
        followed = self._is_followed(name)
        if followed or is_ours(name):
            self.modules.add(name)
        else:
            self._say("of", name, _version(name.partition(".")[0]))
        return followed

    def _is_callable_of_others(self, thing: Any) -> bool:  # noqa: ANN401
        """Return whether something is known by its name in another package, such as NumPy."""
        name, home = getattr(thing, "__qualname__", None), getattr(thing, "__module__", None)
        named = isinstance(name, str) and isinstance(home, str)
        return named and not is_ours(str(home)) and not self._is_followed(str(home))

    def _is_followed(self, name: str) -> bool:
        return not is_ours(name) and is_followed(name, self.own)


def _tops(things: Iterable[Any]) -> Iterator[str]:
    """Yield the top packages that things come from, and their classes' bases."""
    for thing in things:
        function = getattr(thing, "py_func", thing)
        if isinstance(function, FunctionType):
            names: Iterable[object] = [function.__globals__.get("__name__")]
        else:
            kind = thing if isinstance(thing, type) else type(thing)
            names = [base.__module__ for base in kind.__mro__]
        yield from (name.partition(".")[0] for name in names if isinstance(name, str))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the globals and attributes that code names, inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _content_of(cell: CellType) -> tuple[object, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not filled yet
        return ()


def _has_lasting_text(value: object) -> bool:
    """Return whether the text of a set's element is the same in every process."""
    if isinstance(value, tuple):
        return all(map(_has_lasting_text, value))
    return type(value) in _ATOMS or isinstance(value, enum.Enum)


def _is_derived(kind: type, name: str) -> bool:
    return any(isinstance(vars(base).get(name), cached_property) for base in kind.__mro__)


def _version(top: str) -> str:
    return str(getattr(sys.modules.get(top), "__version__", ""))
