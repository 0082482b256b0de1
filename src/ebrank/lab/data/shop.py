"""A synthetic shop: queries share the items of a catalog, and features do not know all of an item.

    logit R_qi = level + w·x_i + w'·z_qi + u_i + e_qi,   u_i ~ N(0, tau²),   e_qi ~ N(0, 0.5²)

x_i are features of the item, z_qi of query and item; u_i is what features do not know about the
item in any of its queries, such as a bad photo or a good seller. A query's candidates are of one
category. The parameters are part of the name (`synthetic.generate` takes it, too):

>>> ShopLike.parse("shop-like:tau=0.4").generate(scale=0.1)
Dataset('shop-like:tau=0.4×0.1', queries=40, rows=1600, features=8, max_label=127)

Relevance is a real number, labels are whole ones. So labels number 128 levels, evenly spaced in
logits, and the dataset has the relevance of each. All draws but the scale of u are the same for
every tau and level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ebrank.lab.data.dataset import MAX_LEVEL, Dataset
from ebrank.lab.data.presets import split_queries, stream
from ebrank.lab.data.published import Size
from ebrank.parameters import Configured, declared, param, to_text
from ebrank.typing import Features, Floats, Ints, Labels

CATEGORIES, ITEMS, QUERIES, CANDIDATES = 20, 75, 20, 40
"""Categories at scale 1; items and queries of each; candidates of a query."""
ITEM_FEATURES, ITEM_WEIGHT = 6, 0.45
"""Features x of an item, and the standard deviation of their weights w."""
MATCH_WEIGHTS = (0.6, 0.4)
"""w', the weights of the features z of query and item."""
SPREAD = 0.5
"""Standard deviation of e."""


@dataclass(frozen=True)
class ShopLike(Configured):
    """A preset with parameters; `queries`, `n_features` and so on are as in `SyntheticPreset`."""

    name = "shop-like"

    tau: float = param(
        0.8, "standard deviation of what features do not know about an item, in logits", at_least=0
    )
    level: float = param(-1.6, "logit of a typical relevance: −1.6 gives a mean R of about 0.2")
    known: bool = param(False, "whether u, the item's effect, is a feature too")

    queries = CATEGORIES * QUERIES
    max_label = MAX_LEVEL
    baseline_feature = ITEM_FEATURES + 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return ITEM_FEATURES + len(MATCH_WEIGHTS) + self.known

    @property
    def size(self) -> Size:
        """Queries and rows at scale 1."""
        return Size(self.queries, self.queries * CANDIDATES)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the preset that a text such as `shop-like:tau=0.4` names."""
        return cls.from_text(text.partition(":")[2], cls.name)

    def __str__(self) -> str:
        """Return the text that `parse` reads back."""
        return to_text(self.name, declared(type(self)), lambda name: getattr(self, name))

    def generate(self, *, scale: float = 1.0, seed: int = 0) -> Dataset:
        """Return the dataset with raw features; `scale` multiplies categories."""
        rng = stream(self.name, seed)
        categories = max(1, round(CATEGORIES * scale))
        weights = ITEM_WEIGHT * rng.standard_normal(ITEM_FEATURES)
        x = rng.standard_normal((categories * ITEMS, ITEM_FEATURES))
        u = self.tau * rng.standard_normal(len(x))
        items = _candidates(rng, categories)
        z = rng.standard_normal((len(items), len(MATCH_WEIGHTS)))
        logits = self.level + u[items] + SPREAD * rng.standard_normal(len(items))
        for weight, column in zip((*weights, *MATCH_WEIGHTS), (*x[items].T, *z.T), strict=True):
            logits += weight * column  # one by one: the same bits on every processor
        labels, relevance = _levels(logits)
        features: Features = np.column_stack([x[items], z, *([u[items]] if self.known else [])])
        queries = len(items) // CANDIDATES
        return Dataset(
            name=f"{self}" if scale == 1.0 else f"{self}×{scale:g}",
            features=features.astype(np.float32),
            labels=labels,
            query_pointers=np.arange(queries + 1) * CANDIDATES,
            query_ids=np.arange(1, queries + 1).astype(np.str_),
            query_splits=split_queries(queries),
            baseline=z[:, 0].astype(np.float32),
            feature_ids=np.arange(1, self.n_features + 1, dtype=np.int32),
            max_label=MAX_LEVEL,
            items=items,
            relevance=relevance,
        )


def _candidates(rng: np.random.Generator, categories: int) -> Ints:
    """Return the items of all queries: some of one category each, of all categories in turn."""
    catalog = np.arange(categories * ITEMS).reshape(categories, ITEMS)
    queries = range(categories * QUERIES)
    chosen = [rng.permutation(catalog[query % categories])[:CANDIDATES] for query in queries]
    return np.concatenate(chosen)


def _levels(logits: Floats) -> tuple[Labels, Floats]:
    """Return the nearest of 128 levels for each logit, and the relevance of each level."""
    low, high = logits.min(), logits.max()
    step = (high - low) / MAX_LEVEL
    labels = np.rint((logits - low) / step).astype(np.int8)
    relevance = 1.0 / (1.0 + np.exp(-(low + step * np.arange(MAX_LEVEL + 1.0))))
    return labels, np.round(relevance, 12)  # platforms round their exponentials differently
