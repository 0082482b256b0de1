"""What makes compiled code stale: sources, versions and plug-in files.

Machine code on disk is reused only while everything behind it is unchanged: the files of ebrank's
modules that its module imports, directly or not, and the versions of Python and of the libraries
(`module_stamp`). So an edit to one ranker does not recompile the others. For a formula with parts
from elsewhere these are their files, and all of ebrank that can affect a trial (`package_stamp`).
Stored trials depend on the same (`lab.simulation.stamps`).

Files tell whether code is the same. Constants that somebody changes while the code runs do not
count, nor do files read as data, nor modules whose names are computed at run time.
"""

from __future__ import annotations

import ast
import platform
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path

import numpy as np
import xxhash

import ebrank

PACKAGE = "ebrank"
ROOT = Path(ebrank.__file__).parent
UNRELATED = ("addons", "cli", "client", "lab/data", "paper", "service", "statistics", "testing")
"""Parts of ebrank that do not affect a trial, given its dataset and config."""
DECISIVE = ("addons/cluster/worker.py", "addons/trees.py")
"""Files of these parts that do."""

_IMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.*)|import\s+(.+))", re.MULTILINE
)
"""The module and names of `from ... import`, or the modules of `import`, as ebrank writes them."""
_BY_NAME = re.compile(rb"[\"']([\w.]+):\w+[\"']")
"""A function that a formula names by its module, as in "module:function"."""


def libraries() -> dict[str, str]:
    """Return the versions of the libraries that compute; SciPy and Numba load slowly."""
    installed = {}
    for name in ("scipy", "numba", "lightgbm"):  # the last one only if it is there
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {"numpy": np.__version__, **installed}


# --- ebrank itself -------------------------------------------------------------------------------


@cache
def package_stamp() -> str:
    """Return a hash of what decides a trial: parts of ebrank, libraries, and Python's version."""
    files = {str(path.relative_to(ROOT)): path for path in ROOT.rglob("*.py")}
    decisive = {
        place: path
        for place, path in files.items()
        if place in DECISIVE or not any(map(Path(place).is_relative_to, UNRELATED))
    }
    return hashed(_runtime() + _digests(decisive))[:16]


def module_stamp(*modules: str) -> str | None:
    """Return a hash of some modules, of those they import, and of the libraries.

    None if one of them is in no file.
    """
    plugins = sorted(name for name in modules if not is_own(name))
    if not plugins:
        return _own_stamp(*modules)
    parts = plugin_digests(plugins)
    return None if parts is None else hashed([package_stamp(), *parts])


@cache
def _own_stamp(*modules: str) -> str:
    return hashed(_runtime() + _digests(_files_behind(modules, _own_file)))


@cache
def _own_file(name: str) -> Path | None:
    """Return the file of a module of ebrank; None if there is no such module."""
    if not name.startswith(f"{PACKAGE}."):
        return None  # nor for the package itself, which imports the rest on first use
    place = ROOT.joinpath(*name.split(".")[1:])
    candidates = (place.with_suffix(".py"), place / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def is_own(module: str) -> bool:
    """Return whether a module is one of ebrank's."""
    return module.partition(".")[0] == PACKAGE


def _runtime() -> list[str]:
    return [".".join(platform.python_version_tuple()[:2]), *libraries().values()]


# --- plug-ins ------------------------------------------------------------------------------------


def plugin_digests(modules: Iterable[str]) -> list[str] | None:
    """Return the files behind modules from elsewhere, each with a hash; None if one has none."""
    files: dict[str, Path] = {}
    for name in modules:
        behind = _plugin_files(name)
        if behind is None:
            return None
        files |= behind
    return _digests(files)


def _plugin_files(name: str) -> dict[str, Path] | None:
    """Return the files behind a module from elsewhere, by module; None if it is in no file.

    These are its own file and those it imports, installed packages left out. Of an installed
    package all files count. ebrank and the standard library have none here.
    """
    top = name.partition(".")[0]
    if top in (PACKAGE, "numpy", "numba") or top in sys.stdlib_module_names:
        return {}  # of these, the versions count
    file = getattr(sys.modules.get(name), "__file__", None)
    if not isinstance(file, str) or not Path(file).is_file():
        return None
    if not _is_installed(Path(file)):
        return _files_behind([name], lambda other: Path(file) if other == name else _file_of(other))
    folders = list(getattr(sys.modules.get(top), "__path__", ()))
    paths = Path(folders[0]).rglob("*.py") if folders else [Path(file)]
    root = Path(folders[0]).parent if folders else Path(file).parent
    return {str(path.relative_to(root)): path for path in paths}


def _file_of(name: str) -> Path | None:
    """Return the file of a user's module; None for other names, and for what is installed."""
    top = name.partition(".")[0]
    if top == PACKAGE or top in sys.stdlib_module_names:
        return None
    for part in (top, name):  # looking for a part of a package imports the package
        try:
            spec = find_spec(part)
        except (ImportError, ValueError, AttributeError):
            return None
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
        if not places or any(place and _is_installed(Path(place)) for place in places):
            return None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _is_installed(path: Path) -> bool:
    """Return whether a file or folder is one of Python's own or of an installed package."""
    return any(path.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> list[str]:
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(kind) for kind in kinds]
    return [*folders, *site.getsitepackages(), site.getusersitepackages()]


# --- imports -------------------------------------------------------------------------------------


def _files_behind(modules: Iterable[str], file_of: Callable[[str], Path | None]) -> dict[str, Path]:
    """Return the files of some modules and of all that they import, by module.

    `file_of` says where a module is, None for names that do not count.
    """
    files: dict[str, Path] = {}
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        path = file_of(name)
        if path is not None:
            files[name] = path
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            waiting |= _imports(path.read_bytes(), package).difference(files)
    return files


@cache
def _imports(source: bytes, package: str) -> frozenset[str]:
    """Return what a module imports, or names in a formula; some of the names are not modules."""
    names = {name.decode() for name in _BY_NAME.findall(source)}
    for origin, imported in _matched(source) if is_own(package) else _parsed(source):
        with suppress(ImportError):  # beyond the top of its package
            module = resolve_name(origin, package)
            names |= {module, *(f"{module}.{name}" for name in imported)}
    parts = [name.split(".") for name in names]
    return frozenset(".".join(part[:size]) for part in parts for size in range(1, len(part) + 1))


def _matched(source: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules that a file of ebrank imports, with names: parsing all takes too long."""
    for origin, imported, plain in _IMPORT.findall(source.decode()):
        if origin:
            yield origin, re.findall(r"\w+", imported)
        else:
            yield from ((words.split()[0], []) for words in plain.split(",") if words.strip())


def _parsed(source: bytes) -> Iterator[tuple[str, list[str]]]:
    """Yield the same for any file: in any style, any encoding, and nothing that is a text."""
    with suppress(SyntaxError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                yield from ((alias.name, []) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = "." * node.level + (node.module or "")
                yield origin, [alias.name for alias in node.names]


def _digests(files: Mapping[str, Path]) -> list[str]:
    return [f"{name} {_hash_bytes(path.read_bytes())}" for name, path in sorted(files.items())]


def hashed(parts: Iterable[str]) -> str:
    """Return a hash of some texts."""
    return _hash_bytes("\0".join(parts).encode())


def _hash_bytes(content: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(content)
