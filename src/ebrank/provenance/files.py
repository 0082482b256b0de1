"""The files behind modules: their own, and those of all modules that they import."""

from __future__ import annotations

import importlib.machinery
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

import xxhash

PACKAGE = "ebrank"

_IMPORT = re.compile(
    rb"(?:\bfrom\s*([.\w]+?)\s*)?\bimport\b(?:[ \t\f]|\\\r?\n)*"
    rb"(\((?:#[^\n]*|[^)#])*\)|(?:\\\r?\n|[^\n;#])*)"
)


def digests(modules: Iterable[str], own: frozenset[str]) -> dict[str, str]:
    """Return hashes of the files of modules and of those they import, directly or not, by name."""
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in found or name in ("", PACKAGE) or not is_followed(name, own):
            continue
        ours = is_ours(name)
        source = _own_source(name) if ours else _source(name)
        if source is not None:
            found[name], imported = source
            waiting += imported
            waiting += [] if ours else [name.rpartition(".")[0]]  # a package runs first
    return found


def _source(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the hash of a module's file, and what it imports; None if it has no file."""
    path = _file(name)
    if path is None:
        return None
    try:
        text = path.read_bytes()
    except OSError:  # in an archive, or gone
        return None
    imported = _imported(name, path, text) if path.suffix == ".py" else ()
    return xxhash.xxh3_128_hexdigest(text), tuple(imported)


@cache
def _own_source(name: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the same for a module of ebrank, of which only ebrank's own imports count."""
    source = _source(name)
    return source and (source[0], tuple(filter(is_ours, source[1])))


@lru_cache(1024)
def _imports(text: bytes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the imports of a module's text, as ("", modules) or (module, names).

    A pattern finds them ten times as fast as a parser. It also finds text that only looks like an
    import, for example in a docstring. This is harmless: the module does not exist, or counts too.
    """
    found = []
    for origin, names in _IMPORT.findall(text):
        clean = re.sub(rb"#[^\n]*|[()\\]", b" ", names).decode(errors="replace")
        words = [part.split() for part in clean.split(",")]
        found.append((origin.decode(), tuple(part[0] for part in words if part)))
    return tuple(found)


def _imported(module: str, path: Path, text: bytes) -> Iterator[str]:
    """Yield the full names of modules that a module may import; some are not modules."""
    package = module.split(".") if path.stem == "__init__" else module.split(".")[:-1]
    for origin, names in _imports(text):
        level = len(origin) - len(origin.lstrip("."))
        around = package[: len(package) - level + 1] if level else []
        base = ".".join([*around, *filter(None, [origin[level:]])])
        yield base
        yield from (f"{base}.{name}" if base else name for name in names)


def is_ours(module: str) -> bool:
    """Return whether a module belongs to ebrank."""
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def is_followed(module: str, own: frozenset[str]) -> bool:
    """Return whether a module is ebrank's, a user's, or in a top package in `own`."""
    top = module.partition(".")[0]
    if is_ours(module):
        return True
    if top in sys.stdlib_module_names:
        return False
    return top in own or not _is_installed(_place(top))


def _place(top: str) -> Path | None:
    """Return where a module or package is; None if it is in no file or folder."""
    folders = list(getattr(sys.modules.get(top), "__path__", ()))
    return Path(folders[0]) if folders else _file(top)


def _file(name: str) -> Path | None:
    """Return the file of a module, imported or not; None if there is none."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        return Path(file) if isinstance(file, str) else None
    parent, _, last = name.rpartition(".")
    folders = list(getattr(sys.modules.get(parent), "__path__", ())) if parent else None
    if parent and not folders:
        package = _file(parent)
        if package is None or package.name != "__init__.py":
            return None
        folders = [str(package.parent)]
    try:
        spec = importlib.machinery.PathFinder.find_spec(last, folders)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


@lru_cache(1024)
def _is_installed(path: Path | None) -> bool:
    return path is not None and any(path.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> list[Path]:
    """Return the folders of Python's own modules and of installed packages."""
    kinds = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [sysconfig.get_path(kind) for kind in kinds]
    return [
        Path(folder) for folder in (*folders, *site.getsitepackages(), site.getusersitepackages())
    ]
