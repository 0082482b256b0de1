"""Rankers by name: `ebrank`, `cftopk:features=concate`, `ebrank:epsilon=20,estimator=exposure`.

A ranker from elsewhere is named by its class, `mymodule:MyRanker` or `mymodule:MyRanker:epsilon=2`,
whose module must be importable, or by the short name that its package gives it through an entry
point in the group `ebrank.rankers`. A package is imported only when one of its rankers is needed:
`installed` reads only package metadata.

>>> load("ebrank.rankers.bm25:BM25").name
'bm25'
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, get_args

from ebrank import rankers
from ebrank.environment.plugins import load_class
from ebrank.errors import ParameterError
from ebrank.parameters import declared, near
from ebrank.rankers.base import REGISTRY, Ranker, Setting

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "ebrank.rankers"
DECLARED = ("name", "help", "settings")


def built_in() -> dict[str, type[Ranker]]:
    """Return ebrank's own rankers by name; each lives in a file of the package `ebrank.rankers`."""
    _import_all(tuple(rankers.__path__))
    return dict(sorted(REGISTRY.items()))


@cache
def _import_all(folders: tuple[str, ...]) -> None:
    for module in pkgutil.iter_modules(folders):
        importlib.import_module(f"{rankers.__name__}.{module.name}")


def parse(text: str) -> Ranker:
    """Return the ranker that a text such as `ebrank:epsilon=20` names.

    >>> parse("ebrank:epsilon=20,estimator=exposure").value("epsilon")
    20.0
    >>> str(parse("ebrank:epsilon=3"))
    'ebrank:epsilon=3'
    """
    name, _, rest = text.partition(":")
    if name in built_in():
        return built_in()[name].from_text(rest, name)
    if name in (theirs := installed()):
        return load_installed(theirs[name]).from_text(rest, name)
    inside, _, settings = rest.partition(":")
    if inside and "=" not in inside:  # not parameters, so a name in a module
        path = f"{name}:{inside}"
        return load(path).from_text(settings, path)
    raise ParameterError(f"no ranker is called {name!r}{near(name, names())}")


def names() -> list[str]:
    """Return the names of all rankers, including those of installed packages, without imports."""
    return sorted({*built_in(), *installed()})


# --- from elsewhere ------------------------------------------------------------------------------


def installed() -> dict[str, list[EntryPoint]]:
    """Return the entry points of installed packages, by the name they give a ranker."""
    from importlib.metadata import entry_points  # slow to import

    entries: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        entries.setdefault(entry.name, []).append(entry)
    return entries


def load_installed(entries: list[EntryPoint]) -> type[Ranker]:
    """Return the ranker to which one package, or several that agree, give a name."""
    first, last = entries[0], entries[-1]
    if first.value != last.value:
        raise ParameterError(
            f"{_package(first)} and {_package(last)} both have a ranker called {first.name!r}; "
            f"name the one you mean by its class, {first.value} or {last.value}"
        )
    ranker = load(first.value)
    if ranker.name != first.name:
        raise ParameterError(
            f"{_package(first)} lists a ranker {first.name!r}, but its class {first.value} is "
            f"called {ranker.name!r}; both names must be the same"
        )
    return ranker


def origin(entries: list[EntryPoint]) -> str:
    """Return where a ranker comes from, in words, without importing it."""
    if entries[0].name in built_in():
        return f"From {_package(entries[0])}; hidden by ebrank's own ranker of the same name."
    return f"From {' and '.join(map(_package, entries))}: {entries[0].value}."


def load(path: str) -> type[Ranker]:
    """Return the ranker that a path such as `package.module:Class` names."""
    ranker = load_class(path, Ranker)
    if ranker not in built_in().values():
        _check_declaration(ranker, path)
    return ranker


def _check_declaration(ranker: type[Ranker], path: str) -> None:
    """Raise if a class does not declare everything a ranker must declare."""
    for attribute in DECLARED:
        if not getattr(ranker, attribute, None):
            raise ParameterError(f"{path} has no {attribute}; a ranker has {', '.join(DECLARED)}")
    if ranker.name in built_in():
        raise ParameterError(
            f"{path} has the name {ranker.name!r}, which is one of ebrank's own; choose another"
        )
    if not set(ranker.settings) <= set(get_args(Setting)):
        raise ParameterError(f"{path}: settings must be {' or '.join(get_args(Setting))}")
    declared(ranker)
    if ranker.learner is Ranker.learner:
        raise ParameterError(f"{path} has no method learner; define how it learns")


def _package(entry: EntryPoint) -> str:
    return f"the package {entry.dist.name}" if entry.dist else "an installed package"
