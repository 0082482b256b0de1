"""`python -m benchmarks [NAME...]`: run them all, or some, and print the figures as Markdown."""

from __future__ import annotations

import importlib
import sys

from benchmarks.figure import print_figures

NAMES = (
    "reading",
    "synthesis",
    "prior",
    "simulation",
    "cluster",
    "store",
    "service",
    "stalls",
    "forgetting",
    "chaos",
    "fuzz",
    "logs",
    "imports",
    "fleet",
)


def main(names: list[str]) -> int:
    """Print one table of figures; exit with 1 if a target was missed."""
    print("| what | measured | target | met |\n|---|---|---|---|")
    modules = [importlib.import_module(f"benchmarks.{name}") for name in names or NAMES]
    met = [print_figures(module.figures()) for module in modules]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
