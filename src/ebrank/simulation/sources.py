"""Which files say what a ranker from elsewhere does: trials it made are its own only while they do.

These are the files of its class and of the classes it derives from, ebrank's left out, and those of
the modules it imports, directly or not, that live below the class's own root: the folder of its
top package, or of its module where it is in no package. Imports are read from the text, so those
within functions count too, and so do constants. What is read as data does not, nor do modules that
are imported by a name made up at run time, and installed packages other than its own.
"""

from __future__ import annotations

import ast
import inspect
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import ebrank

OURS = Path(ebrank.__file__).parent
INSTALLED = {
    Path(sysconfig.get_path(kind)) for kind in ("stdlib", "platstdlib", "purelib", "platlib")
}


def own_sources(ranker: type) -> dict[str, bytes]:
    """Return the sources that say what a ranker does, by names that do not tell where they are.

    There are none for ebrank's own rankers.

    Raises:
        OSError, TypeError: if one has no file: it was typed in at a prompt.
    """
    bases = [base for base in ranker.__mro__ if base.__module__ != "builtins"]
    files = {f"{base.__module__}:": Path(inspect.getfile(base)).absolute() for base in bases}
    files = {name: path for name, path in files.items() if not path.is_relative_to(OURS)}
    own = files.get(f"{ranker.__module__}:")
    if own is not None:
        home = _home(ranker.__module__, own)
        root = home / ranker.__module__.partition(".")[0] if _is_packed(ranker, own) else home
        if root not in INSTALLED:
            begin = {path for path in files.values() if path.is_relative_to(root)}
            for path in _imported(begin, home, root):
                files[path.relative_to(home).as_posix()] = path
    return {name: files[name].read_bytes() for name in sorted(files)}


def _is_packed(ranker: type, own: Path) -> bool:
    return "." in ranker.__module__ or own.name == "__init__.py"


def _home(module: str, file: Path) -> Path:
    """Return the folder that a module's full name counts from."""
    names = module.split(".")
    steps = len(names) + (file.name == "__init__.py")
    return file.parents[min(steps, len(file.parents)) - 1]


def _imported(begin: set[Path], home: Path, root: Path) -> set[Path]:
    """Return some files and those below `root` that they import, directly or not."""
    found: set[Path] = set()
    waiting = list(begin)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in _imports(path, home):
            for file in _files_of(name, home):
                if file.is_relative_to(root) and not file.is_relative_to(OURS):
                    waiting.append(file)
    return found


def _imports(path: Path, home: Path) -> Iterator[tuple[str, ...]]:
    """Yield the full names that a file may import, as their parts."""
    package = path.relative_to(home).parent.parts
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # being edited, or never run
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            up = package[: len(package) - node.level + 1] if node.level else ()
            module = (*up, *node.module.split(".")) if node.module else up
            for alias in node.names:
                yield (*module, alias.name)  # a module, or something in one


def _files_of(name: tuple[str, ...], home: Path) -> Iterator[Path]:
    """Yield the files that importing a name runs: its own, and those of the packages around it."""
    for end in range(1, len(name) + 1):
        path = home.joinpath(*name[:end])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                yield file
