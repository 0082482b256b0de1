"""`ebrank judgments`: posterior relevance as judgments, for tools that evaluate search.

Only items that users were shown are judged: of others, the features alone would speak. A grade is
the relevance on a scale from 0 to 3, on which the most relevant pair of the store has 3, because
click rates are far below 1.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ebrank.addons.examining import shown_items
from ebrank.addons.tables import arrow
from ebrank.environment.files import whole_file, write_whole
from ebrank.errors import DataError
from ebrank.model.policy import model_file, policies
from ebrank.model.policy.ranking import Ranking
from ebrank.service.core.models import own_parts
from ebrank.service.learning.fitting import fitted, loaded
from ebrank.service.learning.training import job
from ebrank.service.settings import Settings
from ebrank.service.store.base import Store

MOST = 3
"""The highest grade."""
_FORMULA = ("-", "=", "+", "@")
"""What a spreadsheet takes for the beginning of a formula."""


class Judgment(NamedTuple):
    """What the log says about an item of a query.

    Attributes:
        mean: the posterior relevance: the probability that a user who looks at it clicks.
        lower, upper: its central 90 % credible interval.
        exposure: how many users have examined it, by the examination curve.
    """

    query: str
    item: str
    mean: float
    lower: float
    upper: float
    exposure: float


@dataclass(frozen=True)
class Judgments:
    """The judgments of a store, query by query, the most relevant first.

    Attributes:
        model: the version of the prior; 0 if it was fitted for these judgments.
    """

    all: list[Judgment]
    model: int

    def by_query(self) -> Iterator[tuple[str, list[Judgment]]]:
        """Yield each query with its judgments."""
        for query, judgments in groupby(self.all, key=lambda judgment: judgment.query):
            yield query, list(judgments)

    def grades(self) -> list[float]:
        """Return each relevance on the scale from 0 to 3."""
        top = max((judgment.mean for judgment in self.all), default=1.0) or 1.0
        return [MOST * judgment.mean / top for judgment in self.all]


async def judged(store: Store, settings: Settings) -> Judgments:
    """Return the judgments of a store by its active prior.

    If there is none, one is fitted; without features, all items start out alike.
    """
    active = await store.models.active()
    task = job(settings, active)
    table = await shown_items(store, task)
    if not table.features.shape[1]:
        table = replace(table, features=np.ones((len(table.features), 1), np.float32), keys=("1",))
    if table.document is None:
        ranker = fitted(table, task.ranker(), task)
    else:
        own = own_parts(policies.parse(task.policy))
        ranker = model_file.from_bytes(table.document, f"model {active}", allow=own)
        table = table.as_learned()
    features, stats = table.taught(ranker.scaling)
    ranker.scaling = None  # they are scaled
    items = table.seen_items
    elsewhere = None if items is None else ranker.elsewhere(features, stats, items)
    ranking = ranker.rank(features, stats, elsewhere=elsewhere)
    candidates = ranking.candidates
    ends = Ranking(np.arange(len(stats)), candidates).interval.clip(0.0, 1.0)
    means, exposure = candidates.relevance.clip(0.0, 1.0), candidates.sums.exposure
    names = [(state.query, item) for state in await loaded(store) for item in state.ids]
    names = [pair for pair, seen in zip(names, table.seen, strict=True) if seen]
    rows = [
        Judgment(*pair, float(mean), float(low), float(high), float(looks))
        for pair, mean, (low, high), looks in zip(names, means, ends, exposure, strict=True)
    ]
    places = {query: place for place, (query, _) in enumerate(reversed(names))}
    rows.sort(key=lambda row: (-places[row.query], -row.mean, row.item))
    return Judgments(rows, active)


# --- formats -------------------------------------------------------------------------------------


def write_opensearch(judgments: Judgments, path: Path) -> None:
    """Write the body of a request to OpenSearch's workbench; a rating is a text there."""
    document = {
        "name": "ebrank",
        "description": "Posterior relevance from user behavior",
        "type": "IMPORT_JUDGMENT",
        "judgmentRatings": [
            {
                "query": query,
                "ratings": [{"docId": row.item, "rating": f"{row.mean:.4g}"} for row in rows],
            }
            for query, rows in judgments.by_query()
        ],
    }
    write_whole(path, json.dumps(document, indent=1, ensure_ascii=False).encode(), private=True)


def write_quepid(judgments: Judgments, path: Path) -> None:
    """Write a CSV file of ratings; a query that looks like a formula gets a leading blank."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", "docid", "rating"])
    for row, grade in zip(judgments.all, judgments.grades(), strict=True):
        query = f" {row.query}" if row.query.startswith(_FORMULA) else row.query
        writer.writerow([query, row.item, f"{grade:.2f}"])
    write_whole(path, text.getvalue().encode(), private=True)


def write_trec(judgments: Judgments, path: Path) -> None:
    """Write qrels with whole grades, and the queries of their numbers beside them."""
    for row in judgments.all:
        if len(row.item.split()) != 1:
            raise DataError(
                f"item {row.item!r} has a blank in its name, which qrels cannot hold",
                remedy="Choose another format.",
            )
    numbers = {query: at for at, (query, _) in enumerate(judgments.by_query(), start=1)}
    graded = zip(judgments.all, judgments.grades(), strict=True)
    lines = [f"{numbers[row.query]} 0 {row.item} {round(grade)}\n" for row, grade in graded]
    texts = [f"{number}\t{' '.join(query.split())}\n" for query, number in numbers.items()]
    write_whole(path.with_name("queries.tsv"), "".join(texts).encode(), private=True)
    write_whole(path, "".join(lines).encode(), private=True)


def write_parquet(judgments: Judgments, path: Path) -> None:
    """Write all that is known: mean, lower and upper end, and exposure."""
    pa = arrow()
    columns = zip(*judgments.all, strict=True)
    table = pa.table(dict(zip(Judgment._fields, map(list, columns), strict=True)))
    with whole_file(path, private=True) as temporary:
        pa.parquet.write_table(table, temporary, compression="zstd")


WRITERS: Mapping[str, Callable[[Judgments, Path], None]] = {
    "opensearch": write_opensearch,
    "quepid": write_quepid,
    "trec": write_trec,
    "parquet": write_parquet,
}
"""What writes each format."""
