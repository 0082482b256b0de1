"""Try an installed ebrank as its users would: the library, the lab and the service.

`make release` runs this in empty environments; it needs nothing but `ebrank[report,service]`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ebrank
from ebrank import BehaviorStats, Client, EBRanker

PLACE = re.compile(r"http://127\.0\.0\.1:\d+")


def main() -> None:
    """Try everything once; an error ends it."""
    with tempfile.TemporaryDirectory() as folder:
        library(Path(folder))
        lab(Path(folder))
        service(Path(folder))
    print(f"ebrank {ebrank.__version__} works on Python {sys.version.split()[0]}")


def library(folder: Path) -> None:
    """Fit, rank, save and load."""
    features = np.array([[0.1], [0.4], [0.7], [0.8]], dtype=np.float32)
    stats = BehaviorStats.zeros(4)
    for user in range(30):
        stats.record([2, 1, 0], [user % 2, user % 4 == 0, user % 9 == 0])
    ranker = EBRanker("ebrank:epsilon=20,estimator=exposure").fit(features, stats)
    order = ranker.rank(features, stats).order.tolist()
    assert order == [3, 2, 1, 0], order
    ranker.save(folder / "model.json")
    again = EBRanker.load(folder / "model.json").rank(features, stats).order.tolist()
    assert again == order, again


def lab(folder: Path) -> None:
    """Simulate, and reproduce a little of the paper with its report."""
    little = ("--dataset", "mq2007-like", "--scale", "0.03", "--trials", "1")
    assert json.loads(run("simulate", *little, "--ranker", "auto", "--json"))
    out = folder / "reproduction"
    run("reproduce", *little, "--only", "table1,toy", "--out", str(out))
    assert (out / "report.html").stat().st_size > 10_000


def service(folder: Path) -> None:
    """Serve, put items, rank, and click."""
    command = (*EBRANK, "serve", "--port", "0", "--store", str(folder / "store"))
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        found = next(filter(None, map(PLACE.search, server.stdout)))
        with Client(found.group()) as client:
            client.put_items("tea", {"sencha": [0.4], "assam": [0.2]})
            answer = client.rank("tea")
            assert {item.id for item in answer.items} == {"sencha", "assam"}
            client.click(answer, answer.items[0].id)
    finally:
        server.terminate()
        server.wait(30)


EBRANK = (sys.executable, "-m", "ebrank")


def run(*arguments: str) -> str:
    """Return what a command prints."""
    return subprocess.run(
        (*EBRANK, *arguments), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    main()
