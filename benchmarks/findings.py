"""`python -m benchmarks.findings`: do the paper's findings hold? Prints Markdown.

All rankers run five trials on each dataset; ε is tuned on validation queries first. The checks are
those of the paper's Sec. 5 that a table of Cold-, Warm- and Cum-NDCG can answer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import ebrank
from ebrank.data import Dataset
from ebrank.evaluation.significance import Metric, compare, holm
from ebrank.rankers import registry
from ebrank.simulation import parallel, tuning
from ebrank.simulation.result import Result

MQ2008 = Path(__file__).parents[2] / "shared" / "data" / "MQ2008" / "Fold1"
SEED, TRIALS, JOBS = 7, 5, 2  # a seed that nobody looked at while the rankers were written

TUNED = ("ucbrank", "ebrank", "ebrank:estimator=exposure")
PAPER = (
    "bm25",
    *(f"{name}:features={features}" for features in ("none", "concate")
      for name in ("dbgd", "mgd", "pdgd", "cftopk", "cfrandomk", "cfepsilon")),
    "prior",
)  # fmt: skip
BOUNDS = (
    "ebrank:part=prior",
    "ebrank:part=behavior",
    "ebrank:epsilon=0,estimator=exposure",
    "thompson",
    "random",
    "oracle",
)
SETTINGS = {"none": "W/o-Behav", "concate": "Concate", "non-concate": "non-Concate"}


def main() -> int:
    """Print a section per dataset; exit with 1 if a finding does not hold."""
    failed = 0
    print("# Findings\n")
    print(
        f"Made by `python -m benchmarks.findings`: means of five trials with seed {SEED}, ε tuned\n"
        "on validation queries. Rows with – as their setting are not in the paper's table.\n"
    )
    for data in datasets():
        print(f"## {data.name}\n", flush=True)
        results = dict(measured(data))
        print(
            "| setting | ranker | cold | warm | cum | seconds a trial |\n|---|---|---|---|---|---|"
        )
        for text, result in results.items():
            print(row(text, result), flush=True)
        print()
        for finding, holds in findings(results):
            failed += not holds
            print(f"- {'holds' if holds else '**does not hold**'}: {finding}")
        print(flush=True)
    return int(failed > 0)


def datasets() -> Iterator[Dataset]:
    """Yield what the findings are checked on."""
    if MQ2008.is_dir():
        yield ebrank.load(MQ2008)
    yield ebrank.load("mq2007-like")
    yield ebrank.load("mslr10k-like", scale=0.2)


def measured(data: Dataset) -> Iterator[tuple[str, Result]]:
    """Yield every ranker with its results, tuned ones at their best ε."""
    texts = [*PAPER, *(tuned(data, text) for text in TUNED), *BOUNDS]
    rankers = [registry.parse(text) for text in texts]
    results = parallel.run(data, rankers, seed=SEED, trials=TRIALS, jobs=JOBS)
    yield from zip(texts, results, strict=True)


def tuned(data: Dataset, text: str) -> str:
    """Return a ranker's text with the ε that validation queries prefer."""
    ranker = registry.parse(text)
    grid = tuning.read_grid(ranker, ["epsilon"], [])
    return tuning.tune(data, ranker, grid, seed=SEED, trials=TRIALS, jobs=JOBS).best.text


def row(text: str, result: Result) -> str:
    """Return a line of the table."""
    setting = SETTINGS[registry.parse(text).setting]
    label = f"{setting} | `{text}`" if text not in BOUNDS else f"– | `{text}`"
    means = (result.cold_ndcg.mean(), result.warm_ndcg.mean(), result.cum_ndcg.mean())
    figures = " | ".join(
        f"{mean:.{digits}f}" for mean, digits in zip(means, (3, 3, 1), strict=True)
    )
    return f"| {label} | {figures} | {result.seconds / len(result.trials):.2f} |"


def findings(results: dict[str, Result]) -> Iterator[tuple[str, bool]]:
    """Yield each finding and whether it holds."""
    ours = next(text for text in results if "exposure" in text and text not in BOUNDS)
    ips = next(text for text in results if text.startswith("ebrank:epsilon") and text != ours)
    others = [text for text in results if text not in (*BOUNDS, ours, ips)]
    for metric in ("warm_ndcg", "cum_ndcg"):
        yield ahead(results, ips, others, metric)
        yield significantly_ahead(results, ours, others, metric)
    plain = results["cftopk:features=none"].cold_ndcg.mean()
    biased = results["cftopk:features=concate"].cold_ndcg.mean()
    yield f"CFTopK loses {plain - biased:.3f} of Cold-NDCG with x^b (≥ 0.1)", plain - biased >= 0.1
    for text in ("prior", next(t for t in others if t.startswith("ucbrank")), ips, ours):
        gap = results[text].cold_ndcg.mean() - plain
        yield f"{text} keeps its Cold-NDCG ({gap:+.3f}, within 0.03)", abs(gap) <= 0.03


def ahead(
    results: dict[str, Result], text: str, others: list[str], metric: Metric
) -> tuple[str, bool]:
    """Return whether a ranker has the highest mean."""
    best = max(others, key=lambda other: getattr(results[other], metric).mean())
    lead = getattr(results[text], metric).mean() - getattr(results[best], metric).mean()
    return f"{text} leads in {metric} ({lead:+.3f} against {best})", lead > 0


def significantly_ahead(
    results: dict[str, Result], text: str, others: list[str], metric: Metric
) -> tuple[str, bool]:
    """Return whether a ranker is ahead of all others beyond luck."""
    found = [compare(results[text], results[other], metric) for other in others]
    worst = max(holm([comparison.p_value for comparison in found]))
    holds = worst < 0.05 and all(comparison.difference > 0 for comparison in found)
    lead = min(found, key=lambda comparison: comparison.difference)
    return (
        f"{text} is significantly ahead of all in {metric} "
        f"(least {lead.difference:+.3f} over {lead.b}; largest adjusted p = {worst:.4f})",
        holds,
    )


if __name__ == "__main__":
    sys.exit(main())
