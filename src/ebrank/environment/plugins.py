"""Classes from elsewhere, named by their module: `module:Class`.

>>> from ebrank.model.bonus import Bonus
>>> load_class("ebrank.model.bonus.none:NoBonus", Bonus).name
'none'
"""

from __future__ import annotations

import importlib
from functools import reduce
from types import ModuleType
from typing import TypeVar

from ebrank.errors import ParameterError

C = TypeVar("C")


def load_class(path: str, base: type[C]) -> type[C]:
    """Return the class that a path such as `package.module:Class` names; it derives from `base`.

    Raises:
        ParameterError: naming what is wrong with the path, the module or the class.
    """
    module_name, _, class_name = path.partition(":")
    loaded = _attribute(_module(module_name), class_name, base)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        what = "does not derive from" if isinstance(loaded, type) else "is not a class derived from"
        raise ParameterError(f"{path} {what} {path_of(base)}")
    return loaded


def path_of(kind: type) -> str:
    """Return `module:Class`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def _module(name: str) -> ModuleType:
    """Import a module; raise an error that says why it cannot be imported."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ParameterError(f"{name!r} is not the name of a module, as in package.module:Class")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if f"{name}.".startswith(f"{problem.name}."):
            hint = "; leave out .py" if name.endswith(".py") else ""
            raise ParameterError(
                f"no module is called {name!r}, neither in the working folder nor installed{hint}"
            ) from None
        raise _failure(name, problem) from problem
    except (Exception, SystemExit) as problem:
        raise _failure(name, problem) from problem


def _failure(module: str, problem: BaseException) -> ParameterError:
    """Return the error for a module that fails on import."""
    return ParameterError(f"{module} fails on import: {type(problem).__name__}: {problem}")


def _attribute(module: ModuleType, name: str, base: type) -> object:
    """Return the object with a name, which may have dots, in a module."""
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError:
        classes = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, base) and value is not base
        ]
        kind = base.__name__.lower()
        has = f"it has {', '.join(classes)}" if classes else f"it has no {kind} at all"
        where = getattr(module, "__file__", None) or module.__name__
        raise ParameterError(f"no {name!r} in {where}; {has}") from None
