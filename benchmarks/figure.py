"""One measured figure beside its target, and what several benchmarks measure with."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """A measurement: what, how much, the target, and whether it was met."""

    what: str
    measured: str
    target: str
    met: bool


def print_figures(figures: Iterable[Figure]) -> bool:
    """Print figures as rows of a Markdown table, as they come; return whether all were met."""
    all_met = True
    for figure in figures:
        all_met &= figure.met
        met = "yes" if figure.met else "**no**"
        print(f"| {figure.what} | {figure.measured} | {figure.target} | {met} |", flush=True)
    return all_met


def print_load() -> None:
    """Print what else the machine does: under load, figures say less."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    print(f"others keep each core busy {busy:.1f} times over", file=sys.stderr)


def best_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of several timings: noise on a shared machine only ever adds time."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def processor_seconds(*processes: int) -> float:
    """Return how long processes have computed on all cores, those that ended meanwhile left out."""
    ticks = 0
    for process in processes:
        with suppress(FileNotFoundError):
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def folder_on_disk() -> Iterator[Path]:
    """Yield a temporary folder that is not in memory, as the system's own may be."""
    with tempfile.TemporaryDirectory(dir=Path.cwd().parent) as name:
        yield Path(name)


def python_output(code: str, *arguments: str, **environment: str) -> str:
    """Return what code prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
