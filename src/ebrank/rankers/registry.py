"""Rankers by name: `ebrank`, `cftopk:features=concate`, `ebrank:epsilon=20,estimator=exposure`.

A ranker from elsewhere goes by its class, `mymodule:MyRanker` or `mymodule:MyRanker:epsilon=2`, or
by the name that its package gives it (see `external`).
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil

from ebrank import rankers
from ebrank.errors import ParameterError
from ebrank.rankers import external
from ebrank.rankers.base import REGISTRY, Ranker, parameters


def known() -> dict[str, type[Ranker]]:
    """Return ebrank's own rankers by name; each lives in a file of the package `ebrank.rankers`."""
    for module in pkgutil.iter_modules(rankers.__path__):
        importlib.import_module(f"{rankers.__name__}.{module.name}")
    return dict(sorted(REGISTRY.items()))


def parse(text: str) -> Ranker:
    """Return the ranker that a text such as `ebrank:epsilon=20` names.

    >>> parse("ebrank:epsilon=20,estimator=exposure").epsilon
    20.0
    >>> str(parse("ebrank:epsilon=3"))
    'ebrank:epsilon=3.0'
    """
    ranker, name, settings = _named(text)
    declared = {parameter.name: parameter for parameter in parameters(ranker)}
    values = {}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if key not in declared:
            raise ParameterError(f"{name} has no parameter {setting!r}{_near(key, list(declared))}")
        if not equals:
            example = f"{key}={typed(declared[key].default)}"
            raise ParameterError(f"{name}: {key} needs a value, as in {example}")
        if key in values:
            raise ParameterError(f"{name}: {key} is given twice")
        values[key] = declared[key].read(value)
    return ranker(**values)


def names() -> list[str]:
    """Return the names of all rankers, those of installed packages too; these are not imported."""
    return sorted({*known(), *external.installed()})


def _named(text: str) -> tuple[type[Ranker], str, str]:
    """Return the ranker that a text begins with, what it is called there, and the rest."""
    name, _, rest = text.partition(":")
    ours = known()
    if name in ours:
        return ours[name], name, rest
    theirs = external.installed()
    if name in theirs:
        return external.load_installed(theirs[name], taken=ours), name, rest
    inside, _, settings = rest.partition(":")
    if inside and "=" not in inside:  # no parameters, so it is what a module has
        path = f"{name}:{inside}"
        return external.load(path, taken=ours), path, settings
    raise ParameterError(f"no ranker is called {name!r}{_near(name, names())}")


def typed(value: object) -> str:
    """Return a parameter's value as one would type it.

    >>> typed(20.0), typed(0.5), typed(True), typed("ips")
    ('20', '0.5', 'true', 'ips')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _near(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"{hint} Known: {', '.join(names)}." if names else "; it has none."
