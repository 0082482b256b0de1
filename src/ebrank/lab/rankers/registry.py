"""Rankers by name: `ebrank`, `cftopk:features=concate`, `ebrank:epsilon=20,estimator=exposure`.

A ranker from elsewhere is named by its class, `mymodule:MyRanker` or `mymodule:MyRanker:epsilon=2`,
whose module must be importable.

>>> load("ebrank.lab.rankers.bm25:BM25").name
'bm25'
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import get_args

from ebrank.environment.plugins import load_class
from ebrank.errors import ParameterError
from ebrank.lab import rankers
from ebrank.lab.rankers.base import REGISTRY, Ranker, Setting
from ebrank.parameters import declared, named

DECLARED = ("name", "help", "settings")


def built_in() -> dict[str, type[Ranker]]:
    """Return ebrank's own rankers by name; each lives in a file of `ebrank.lab.rankers`."""
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
    return named(text, built_in(), load, "ranker is")


# --- from elsewhere ------------------------------------------------------------------------------


def load(path: str) -> type[Ranker]:
    """Return the ranker that a path such as `package.module:Class` names, fully declared."""
    ranker = load_class(path, Ranker)
    if ranker in built_in().values():
        return ranker
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
    return ranker
