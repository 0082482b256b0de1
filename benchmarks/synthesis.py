"""The synthetic generator: time and memory of the largest preset, and how its baselines rank."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from sklearn.metrics import ndcg_score

from benchmarks.figure import Figure, best_seconds, python_output
from ebrank.data.dataset import Dataset
from ebrank.data.preparation import prepare
from ebrank.data.synthetic import generate
from ebrank.equations import relevance_probability

LARGEST = "mslr30k-like"
TOLERANCE = 0.03
TARGETS = {
    "mq2007-like": (0.474, 0.591),
    "mslr10k-like": (0.449, 0.510),
    "mslr30k-like": (0.451, 0.506),
}
"""NDCG@5 of BM25 and of CFTopK without behavior in the paper's table of results."""

PEAK_MEMORY = f"""
import resource
from ebrank.data.synthetic import generate
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


def mean_ndcg(dataset: Dataset, scores: npt.ArrayLike) -> float:
    """Return the mean NDCG@5 over the test queries, averaged over the orders of ties."""
    gains, values, starts = relevance(dataset), np.asarray(scores), dataset.query_pointers
    rows = [slice(starts[query], starts[query + 1]) for query in dataset.queries_in("test")]
    return float(np.mean([ndcg_score([gains[own]], [values[own]], k=5) for own in rows]))


def least_squares_scores(dataset: Dataset, block: int = 100_000) -> npt.NDArray[np.float64]:
    """Return the predictions of least squares with intercept, by normal equations over blocks."""
    train = dataset.rows_in("train")
    features, target = dataset.features[train], relevance(dataset)[train]
    mean = features.mean(axis=0, dtype=np.float64)
    gram = np.zeros((len(mean), len(mean)))
    moment = np.zeros(len(mean))
    for start in range(0, len(features), block):
        rows = features[start : start + block] - mean
        gram += rows.T @ rows
        moment += rows.T @ (target[start : start + block] - target.mean())
    weights = np.linalg.lstsq(gram, moment)[0].astype(np.float32)
    return (dataset.features @ weights).astype(np.float64)


def relevance(dataset: Dataset) -> npt.NDArray[np.float64]:
    """Return the relevance probability of every row."""
    return relevance_probability(dataset.labels.astype(np.float64), dataset.max_label)
