"""How strong the tests are: small changes to the code, and how many of them some test notices.

Each module of `TARGETS` is changed in one place at a time: a comparison, an operator, a number, a
condition, a returned value. Only the tests beside it in the table run, in a forked process that has
the libraries imported already: first the quick ones, and if none notices, the slow ones too, with
more examples. A change that no test notices has *survived*, and is listed.

    python tools/mutants.py --most 20 equations priors/fitting

mutmut rewrites functions so that they choose their variant when called, which compiled code cannot,
and cosmic-ray runs every change there is; hence this file.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "ebrank"

TARGETS: dict[str, tuple[str, ...]] = {
    # counting
    "evidence/stats": ("tests/evidence",),
    "evidence/behaviors": ("tests/evidence",),
    "service/store/counting": (
        "tests/service/store/test_counting.py",
        "tests/addons/logs/test_equality.py",
        "tests/testing/test_stores.py",
        "tests/service/serving/test_feedback.py",
        "tests/service/core/test_forgetting.py",
    ),
    # feedback
    "service/serving/feedback": (
        "tests/service/serving/test_feedback.py",
        "tests/service/core/test_bots.py",
        "tests/service/core/test_behaviors.py",
    ),
    # exploration
    "service/serving/lists": (
        "tests/service/serving/stages/test_exploration.py",
        "tests/service/serving/stages/test_pages.py",
        "tests/service/core/test_queries.py",
    ),
    # posterior; shape_grid.py is compiled, where a change means minutes of compilation
    "equations": ("tests/test_equations.py",),
    "model/prior/families/beta": (
        "tests/model/prior/families/test_beta.py",
        "tests/model/prior/learners/test_linear.py",
        "tests/model/policy/test_ranker.py",
    ),
    "model/policy/posterior": ("tests/model/policy/test_posterior.py",),
    # refit
    "model/prior/fitting": (
        "tests/model/prior/test_fitting.py",
        "tests/model/prior/test_item_effects.py",
        "tests/model/prior/test_rows.py",
        "tests/model/prior/learners/test_ridge.py",
        "tests/model/policy/test_policies.py",
        "tests/model/policy/test_ranker.py",
    ),
    "model/policy/policies": (
        "tests/model/policy/test_policies.py",
        "tests/model/policy/test_ranker.py",
        "tests/model/policy/test_model_file.py",
    ),
    # the gate
    "service/learning/fitting": (
        "tests/service/learning/test_fitting.py",
        "tests/service/learning/test_training.py",
        "tests/service/core/test_catalog.py",
        "tests/service/core/test_features.py",
        "tests/service/core/test_trials.py",
    ),
}
"""The tests of each module."""

SECONDS = 600
"""How long tests may take; a change that makes them take ten times as long is noticed."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


class Mutant(NamedTuple):
    """A changed module: its text, and the line with its content before and after."""

    text: str
    line: int
    before: str
    after: str


# --- changes -------------------------------------------------------------------------------------


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every change of a module."""
    tree = ast.parse(source)
    places = list(_places(tree))
    for index, node in enumerate(places):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            target = list(_places(changed))[index]
            before = ast.unparse(target)
            change(target)
            after = ast.unparse(target)
            yield Mutant(ast.unparse(changed), target.lineno, before, after)


def _places(tree: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the nodes that run: no annotations, docstrings, decorators, messages of errors."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or _is_docstring(node) or _is_import(node):
                continue
            if isinstance(node, ast.expr | ast.stmt):
                yield node
            yield from _places(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_import(node: ast.AST) -> bool:
    checking = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return checking or isinstance(node, ast.Import | ast.ImportFrom)


def _changes(node: ast.AST) -> Iterator[Callable[[ast.AST], None]]:
    """Yield functions that change a copy of this node in place."""
    match node:
        case ast.Compare(ops=[comparison]) if type(comparison) in COMPARISONS:
            yield lambda copied: setattr(copied, "ops", [COMPARISONS[type(comparison)]()])
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in OPERATORS:
            yield lambda copied: setattr(copied, "op", OPERATORS[type(operator)]())
        case ast.BoolOp(op=junction):
            other = ast.And if isinstance(junction, ast.Or) else ast.Or
            yield lambda copied: setattr(copied, "op", other())
        case ast.Constant(value=bool(truth)):
            yield lambda copied: setattr(copied, "value", not truth)
        case ast.Constant(value=int(number) | float(number)):
            yield lambda copied: setattr(copied, "value", number + 1)
        case ast.If(test=test) | ast.IfExp(test=test):
            negated = ast.UnaryOp(ast.Not(), test)
            yield lambda copied: setattr(copied, "test", ast.copy_location(negated, test))
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield lambda copied: setattr(copied, "value", ast.Constant(None))


# --- running -------------------------------------------------------------------------------------


def start(root: Path, tests: tuple[str, ...], *, quick: bool) -> int:
    """Run tests with the package in a folder, in a process of their own; return its number."""
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.environ["PYTHONPATH"] = str(root)
    sys.path[:0] = [str(root), str(PROJECT)]
    import pytest

    some = ("-m", "not slow") if quick else ()
    if quick:
        os.environ["HYPOTHESIS_PROFILE"] = "quick"
    quiet = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist")
    os._exit(int(pytest.main([*quiet, *some, *tests])))


def passed(child: int, deadline: float) -> bool | None:
    """Return whether the tests of a process passed; None while they run."""
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        return status == 0
    if time.monotonic() < deadline:
        return None
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def survivors(
    module: str, changes: list[Mutant], roots: list[Path], patience: float, *, quick: bool = True
) -> Iterator[Mutant]:
    """Yield the changes that no test notices; each folder has a copy of the package to change."""
    waiting, free = list(reversed(changes)), list(roots)
    running: dict[int, tuple[Mutant, Path, float]] = {}
    while waiting or running:
        while waiting and free:
            mutant, root = waiting.pop(), free.pop()
            (root / "ebrank" / f"{module}.py").write_text(mutant.text, encoding="utf-8")
            child = start(root, TARGETS[module], quick=quick)
            running[child] = (mutant, root, time.monotonic() + patience)
        for child, (mutant, root, deadline) in list(running.items()):
            result = passed(child, deadline)
            if result is not None:
                del running[child]
                free.append(root)
            if result:
                yield mutant
        time.sleep(0.02)


def measure(module: str, most: int, seed: int) -> tuple[int, int]:
    """Return how many changes of a module tests notice, and how many were tried; list the rest."""
    source = (PACKAGE / f"{module}.py").read_text(encoding="utf-8")
    chosen = list(mutants(source))
    if len(chosen) > most:
        chosen = random.Random(seed).sample(chosen, most)
    same = Mutant(ast.unparse(ast.parse(source)), 0, "", "")
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(folder) / str(core) for core in range(os.cpu_count() or 1)]
        for root in roots:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PACKAGE, root / "ebrank", ignore=ignored)
        began = time.monotonic()
        if list(survivors(module, [same], roots[:1], SECONDS)) != [same]:
            sys.exit(f"{module}: its tests fail without a change: {' '.join(TARGETS[module])}")
        patience = min(SECONDS, 5 + 10 * (time.monotonic() - began))
        noticed = len(chosen)
        left = list(survivors(module, chosen, roots, patience))
        for mutant in survivors(module, left, roots, SECONDS, quick=False):
            noticed -= 1
            place = f"{module}.py:{mutant.line}"
            print(f"  survived {place}: {mutant.before!r} → {mutant.after!r}", flush=True)
    print(f"{module}: {noticed} of {len(chosen)} noticed", flush=True)
    return noticed, len(chosen)


def main() -> None:
    """Measure the modules that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(TARGETS))
    parser.add_argument("--most", type=int, default=12, help="changes of each module [12]")
    parser.add_argument("--seed", type=int, default=0, help="which changes are chosen [0]")
    options = parser.parse_args()
    os.chdir(PROJECT)
    sys.dont_write_bytecode = True  # a change within a second would go unnoticed
    import numba  # noqa: F401 (forked processes have them at once; not hypothesis, a plugin)
    import pytest  # noqa: F401
    import scipy.optimize  # noqa: F401

    modules = options.modules or list(TARGETS)
    counts = [measure(module, options.most, options.seed) for module in modules]
    noticed, tried = (sum(column) for column in zip(*counts, strict=True))
    print(f"all: {noticed} of {tried} noticed ({noticed / max(tried, 1):.0%})")


if __name__ == "__main__":
    main()
