"""Rankers by name: `ebrank`, `cftopk:features=concate`, `ebrank:epsilon=20,estimator=exposure`.

A ranker from elsewhere is named by its class, `mymodule:MyRanker` or `mymodule:MyRanker:epsilon=2`,
or by the name that its package gives it (see `external`).
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from ebrank import rankers
from ebrank.errors import ParameterError
from ebrank.parameters import near
from ebrank.rankers import external
from ebrank.rankers.base import REGISTRY, Ranker


def known() -> dict[str, type[Ranker]]:
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
    ranker, name, settings = _named(text)
    return ranker.from_text(settings, name)


def names() -> list[str]:
    """Return the names of all rankers, including those of installed packages, without imports."""
    return sorted({*known(), *external.installed()})


def _named(text: str) -> tuple[type[Ranker], str, str]:
    """Return the ranker that a text begins with, its name there, and the rest."""
    name, _, rest = text.partition(":")
    ours = known()
    if name in ours:
        return ours[name], name, rest
    theirs = external.installed()
    if name in theirs:
        return external.load_installed(theirs[name], taken=ours), name, rest
    inside, _, settings = rest.partition(":")
    if inside and "=" not in inside:  # not parameters, so a name in a module
        path = f"{name}:{inside}"
        return external.load(path, taken=ours), path, settings
    raise ParameterError(f"no ranker is called {name!r}{near(name, names())}")
