"""The synthetic generator: time and memory of the largest preset, and how its baselines rank."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.figure import Figure, best_seconds, python_output
from ebrank.lab.data.preparation import prepare
from ebrank.lab.data.synthetic import generate
from tests.lab.data.ranking_quality import TARGETS, least_squares_scores, mean_ndcg

LARGEST = "mslr30k-like"
TOLERANCE = 0.03
PEAK_MEMORY = f"""
import resource
from ebrank.lab.data.synthetic import generate
generate({LARGEST!r})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def figures() -> Iterator[Figure]:
    yield from _cost()
    for name, targets in TARGETS.items():
        dataset = prepare(generate(name))
        scores: dict[str, npt.ArrayLike] = {
            "BM25": dataset.baseline,
            "least squares": least_squares_scores(dataset),
        }
        for target, (ranker, values) in zip(targets, scores.items(), strict=True):
            reached = mean_ndcg(dataset, values)
            yield Figure(
                f"{name}: NDCG@5 of {ranker}",
                f"{reached:.3f}",
                f"{target:.3f} ± {TOLERANCE}",
                abs(reached - target) <= TOLERANCE,
            )


def _cost() -> Iterator[Figure]:
    generate(LARGEST, scale=0.001)  # compiles
    start = time.perf_counter()
    size = generate(LARGEST).features.size
    seconds = time.perf_counter() - start
    yield Figure(f"{LARGEST}: seconds to generate", f"{seconds:.1f} s", "< 30 s", seconds < 30)
    part = 100
    rng = np.random.default_rng(0)
    normals = part * best_seconds(lambda: rng.standard_normal(size // part, np.float32))
    yield Figure(
        f"{LARGEST}: time over that of drawing as many normals with NumPy on one core",
        f"{seconds / normals:.1f}",
        "< 5",
        seconds < 5 * normals,
    )
    memory = peak_gib()
    yield Figure(f"{LARGEST}: peak memory", f"{memory:.2f} GiB", "< 6 GiB", memory < 6)


def peak_gib() -> float:
    """Return the largest resident size of a fresh process that generates the largest preset."""
    unit = 1 if sys.platform == "darwin" else 1024
    return int(python_output(PEAK_MEMORY)) * unit / 2**30
