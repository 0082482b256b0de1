"""`python -m benchmarks [NAME...]`: run them all, or some, and print the figures as Markdown."""

from __future__ import annotations

import importlib
import sys

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
    "contexts",
    "chaos",
    "fuzz",
    "logs",
    "fleet",
)


def main(names: list[str]) -> int:
    """Print one table of figures; exit with 1 if a target was missed."""
    missed = 0
    print("| what | measured | target | met |\n|---|---|---|---|")
    for name in names or NAMES:
        for figure in importlib.import_module(f"benchmarks.{name}").figures():
            missed += not figure.met
            met = "yes" if figure.met else "**no**"
            print(f"| {figure.what} | {figure.measured} | {figure.target} | {met} |", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
