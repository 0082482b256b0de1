"""Rankers from elsewhere: a class in your own file, or one from an installed package.

`mymodule:MyRanker` is the class `MyRanker` of the module `mymodule`, which must be importable. A
package gives its rankers short names through entry points in the group `ebrank.rankers`. It is
imported only when one of them is needed: `installed` reads only package metadata.

In these functions, `taken` are ebrank's own rankers, whose names no other ranker may have.

>>> load("ebrank.rankers.bm25:BM25", taken={}).name
'bm25'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, get_args

from ebrank.errors import ParameterError
from ebrank.plugins import load_class
from ebrank.rankers.base import Ranker, Setting

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "ebrank.rankers"
DECLARED = ("name", "help", "settings")
Taken: TypeAlias = Mapping[str, type[Ranker]]


def installed() -> dict[str, list[EntryPoint]]:
    """Return the entry points of installed packages, by the name they give a ranker."""
    from importlib.metadata import entry_points  # slow to import

    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        found.setdefault(entry.name, []).append(entry)
    return found


def load_installed(entries: list[EntryPoint], taken: Taken) -> type[Ranker]:
    """Return the ranker to which one package, or several that agree, give a name."""
    first, last = entries[0], entries[-1]
    if first.value != last.value:
        raise ParameterError(
            f"{_package(first)} and {_package(last)} both have a ranker called {first.name!r}; "
            f"name the one you mean by its class, {first.value} or {last.value}"
        )
    ranker = load(first.value, taken)
    if ranker.name != first.name:
        raise ParameterError(
            f"{_package(first)} lists a ranker {first.name!r}, but its class {first.value} is "
            f"called {ranker.name!r}; both names must be the same"
        )
    return ranker


def origin(entries: list[EntryPoint], taken: Taken) -> str:
    """Return where a ranker comes from, in words, without importing it."""
    if entries[0].name in taken:
        return f"From {_package(entries[0])}; hidden by ebrank's own ranker of the same name."
    return f"From {' and '.join(map(_package, entries))}: {entries[0].value}."


def load(path: str, taken: Taken) -> type[Ranker]:
    """Return the ranker that a path such as `package.module:Class` names."""
    ranker = load_class(path, Ranker)
    if ranker not in taken.values():
        _check_declaration(ranker, path, taken)
    return ranker


def _check_declaration(ranker: type[Ranker], path: str, taken: Taken) -> None:
    """Raise if a class does not declare everything a ranker must declare."""
    for attribute in DECLARED:
        if not getattr(ranker, attribute, None):
            raise ParameterError(f"{path} has no {attribute}; a ranker has {', '.join(DECLARED)}")
    if ranker.name in taken:
        raise ParameterError(
            f"{path} has the name {ranker.name!r}, which is one of ebrank's own; choose another"
        )
    if not set(ranker.settings) <= set(get_args(Setting)):
        raise ParameterError(f"{path}: settings must be {' or '.join(get_args(Setting))}")
    if not (dataclasses.is_dataclass(ranker) and ranker.__dataclass_params__.frozen):
        raise ParameterError(f"{path} is not a frozen dataclass: it needs @dataclass(frozen=True)")
    for field in dataclasses.fields(ranker):
        if "help" not in field.metadata:
            raise ParameterError(
                f"{path}: declare the parameter {field.name} with param(default, help)"
            )
    if ranker.learner is Ranker.learner:
        raise ParameterError(f"{path} has no method learner; define how it learns")


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist else "an installed package"
