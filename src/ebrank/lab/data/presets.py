"""The synthetic datasets by name: what they imitate, how hard they are, what they are made of.

A document has hidden *factors*: how well it, and each of its five text streams, matches the query's
topic; how long each stream is; how well linked, how good, how deep in its site it is. Each feature
is a noisy view of a few factors. As in LETOR, term frequencies, TF·IDF, BM25 and language models of
the same stream nearly repeat each other, and some features are useless.

>>> LETOR_FEATURES[24].name, len(LETOR_FEATURES)
('BM25, whole document', 46)
>>> MSLR_FEATURES[109].name, len(MSLR_FEATURES)
('BM25, whole document', 133)
>>> PRESETS["mq2007-like"].size
Size(queries=1643, rows=67363)
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ebrank.lab.data.published import Size
from ebrank.typing import Labels

STREAMS = ("body", "anchor", "title", "URL", "whole document")

FACTORS = (
    "topic",
    *(f"match {stream}" for stream in STREAMS),
    *(f"length {stream}" for stream in STREAMS),
    "links",
    "quality",
    "depth",
    "rarity",
)
"""Latent factors of a document; "rarity" belongs to the query's terms: all documents share it."""

RELEVANCE = MappingProxyType(
    {
        "topic": 0.65,
        "match title": 0.40,
        "match whole document": 0.25,
        "match anchor": 0.20,
        "match body": 0.15,
        "links": 0.35,
        "quality": 0.30,
    }
)
"""Weights of the factors in the part of relevance that a linear model can learn."""

INTERACTION = ("length body", "depth")
"""Relevance grows with the first factor where the second is positive, and falls elsewhere: trees
and networks can learn this, a linear model cannot."""

MORE_INTERACTIONS = (INTERACTION, ("length whole document", "links"), ("length title", "depth"))
"""These share additional interactions, if a set has any. The first factors affect relevance in no
other way."""


@dataclass(frozen=True, kw_only=True)
class SyntheticFeature:
    """How one feature is made of the factors.

    The weighted factors and noise add up to a latent x of unit variance within a query. Then

        value = offset + min(scale · (e^(tail·y) − 1)/tail, ceiling),   y = max(x − cut, 0),

    rounded down to multiples of `step`; tail = 0 stands for its limit, scale · y. A high cut gives
    many zeros, a high tail a few huge values, step 1 counts.
    """

    name: str
    factors: tuple[tuple[str, float], ...]
    noise: float
    cut: float = -4.0
    tail: float = 0.0
    scale: float = 1.0
    step: float = 0.0
    ceiling: float = float("inf")
    offset: float = 0.0


TOPICALITY = (0.75, 0.60, 0.65, 0.20, 0.80)
"""How much the match of each stream comes from the topic rather than from the stream alone."""

STREAM_CUT = (-2.0, 0.8, -1.0, 0.6, -2.2)
"""Documents with a lower latent value have a zero: few have anchor texts, most have a body."""

STREAM_SCALE = (400.0, 12.0, 6.0, 4.0, 450.0)
"""Typical length of each stream, in words."""


def _per_stream(
    name: str,
    *,
    match: float = 0.0,
    length: float = 0.0,
    rarity: float = 0.0,
    noise: float = 0.2,
    cuts: tuple[float, ...] = STREAM_CUT,
    scales: tuple[float, ...] = (1.0,) * len(STREAMS),
    sparsity: float = 0.0,
    **shape: float,
) -> tuple[SyntheticFeature, ...]:
    """Return a feature computed for each stream.

    `match`, `length` and `rarity` weigh the stream's factors; `sparsity` is added to its cut; the
    rest is as in `SyntheticFeature`.
    """
    return tuple(
        SyntheticFeature(
            name=f"{name}, {stream}",
            factors=(
                ("topic", match * topicality),
                (f"match {stream}", match * (1.0 - topicality**2) ** 0.5),
                (f"length {stream}", length),
                ("rarity", rarity),
            ),
            noise=noise,
            cut=cut + sparsity,
            **{"scale": scale, **shape},
        )
        for stream, topicality, cut, scale in zip(STREAMS, TOPICALITY, cuts, scales, strict=True)
    )


COVERED = _per_stream("covered query terms", match=0.8, noise=0.3, scale=1.2, step=1.0)
COVERAGE = _per_stream(
    "covered query term ratio", match=0.8, noise=0.3, scale=0.3, step=0.05, ceiling=1.0
)
LENGTH = _per_stream(
    "stream length", length=1.0, noise=0.1, tail=0.9, scales=STREAM_SCALE, step=1.0
)
IDF = _per_stream("IDF", rarity=1.0, noise=0.0, scale=3.0, cuts=(-4.0,) * len(STREAMS))
TF = _per_stream("term frequency", match=0.7, length=0.4, noise=0.15, tail=0.8, scale=3.0, step=1.0)
TFIDF = _per_stream("TF·IDF", match=0.7, length=0.4, rarity=0.5, noise=0.15, tail=0.8, scale=12.0)
BM25 = _per_stream("BM25", match=0.95, noise=0.12, tail=0.2, scale=6.0)
LANGUAGE_MODELS = (
    *_per_stream(
        "language model, absolute discount",
        match=0.8,
        length=-0.3,
        noise=0.12,
        scale=4.0,
        offset=-30.0,
    ),
    *_per_stream(
        "language model, Dirichlet", match=0.8, length=-0.4, noise=0.12, scale=3.5, offset=-28.0
    ),
    *_per_stream(
        "language model, Jelinek–Mercer", match=0.8, length=-0.2, noise=0.2, scale=5.0, offset=-32.0
    ),
)
BOOLEAN = _per_stream(
    "Boolean match", match=0.7, noise=0.4, scale=1e6, ceiling=1.0, step=1.0, sparsity=1.5
)
VECTOR_SPACE = _per_stream("vector space", match=0.8, length=0.2, noise=0.15, tail=0.5, scale=0.3)


def _aggregates(
    statistic: str, length: float, rarity: float, scale: float, step: float
) -> Iterator[SyntheticFeature]:
    """Yield sum, minimum, maximum, mean, variance of a term statistic over the query's terms."""
    for name, noise, tail, share, sparsity in (
        ("sum", 0.1, 0.8, 1.0, 0.0),
        ("minimum", 0.5, 0.7, 0.3, 0.8),
        ("maximum", 0.2, 0.9, 0.8, 0.0),
        ("mean", 0.1, 0.8, 0.5, 0.0),
        ("variance", 0.4, 1.6, 0.8, 0.4),
    ):
        yield from _per_stream(
            f"{name} of {statistic}",
            match=0.7,
            length=length,
            rarity=rarity,
            noise=noise,
            tail=tail,
            scale=scale * share,
            step=step if name in ("sum", "minimum", "maximum") else 0.0,
            sparsity=sparsity,
        )


def _of_page(
    name: str, noise: float, factor: str = "", weight: float = 0.0, **shape: float
) -> SyntheticFeature:
    """Return a feature of the page itself, a view of at most one factor."""
    factors = ((factor, weight),) if factor else ()
    return SyntheticFeature(name=name, factors=factors, noise=noise, **shape)


SLASHES = _of_page("slashes in URL", 0.4, "depth", 0.9, cut=-2.5, step=1.0)
URL_LENGTH = _of_page("length of URL", 0.7, "depth", 0.7, cut=-3.0, tail=0.3, scale=12.0, step=1.0)
IN_LINKS = _of_page("in-links", 0.6, "links", 0.8, cut=-0.2, tail=1.6, scale=3.0, step=1.0)
OUT_LINKS = _of_page("out-links", 1.0, cut=0.0, tail=1.4, scale=4.0, step=1.0)
NO_OUT_LINKS = _of_page("out-links", 0.0, cut=0.0)
PAGE_RANK = _of_page("PageRank", 0.6, "links", 0.8, tail=0.7, scale=300.0, step=1.0)
SITE_RANK = _of_page("SiteRank", 0.8, "links", 0.5, tail=0.4, scale=9000.0, step=1.0)
CHILD_PAGES = _of_page("child pages", 0.9, "depth", -0.3, cut=1.0, tail=1.8, scale=2.0, step=1.0)
QUALITY = _of_page("quality score", 0.4, "quality", 0.9, scale=30.0, step=1.0, ceiling=255.0)
QUALITY_TOO = _of_page("quality score 2", 0.8, "quality", 0.6, tail=0.4, scale=12.0, step=1.0)

LETOR_FEATURES = (
    *(*TF, *IDF, *TFIDF, *LENGTH, *BM25, *LANGUAGE_MODELS),
    *(PAGE_RANK, IN_LINKS, NO_OUT_LINKS, SLASHES, URL_LENGTH, CHILD_PAGES),
)
"""The 46 features of LETOR 4.0 (MQ2007), in its order; six are constant within a query."""

MSLR_FEATURES = (
    *(*COVERED, *COVERAGE, *LENGTH, *IDF),
    *_aggregates("term frequency", length=0.4, rarity=0.0, scale=4.0, step=1.0),
    *_aggregates("term frequency per word", length=-0.3, rarity=0.0, scale=0.02, step=0.0),
    *_aggregates("TF·IDF", length=0.4, rarity=0.5, scale=20.0, step=0.0),
    *(*BOOLEAN, *VECTOR_SPACE, *BM25, *LANGUAGE_MODELS),
    *(SLASHES, URL_LENGTH, IN_LINKS, OUT_LINKS, PAGE_RANK, SITE_RANK, QUALITY, QUALITY_TOO),
)
"""Features 1 to 133 of MSLR-WEB10K and 30K, in their order: all but the behavior features."""


# --- presets -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SyntheticPreset:
    """A synthetic dataset that imitates a real one.

    Attributes:
        name: its name.
        queries: number of queries at scale 1.
        mean_candidates: documents per query, on average.
        candidate_quantiles: (probability, candidates) points of the distribution they follow.
        label_shares: share of each label 0, 1, ... among all documents.
        query_spread: standard deviation of the queries' ease, relative to that of their documents'
            relevance: how much the share of relevant documents differs between queries.
        linear: share of the variance of relevance that a linear function of the factors explains.
        interaction: the share that only a nonlinear function explains; no feature has the rest.
        baseline_clarity: correlation of the BM25-like feature with the match it measures.
        baseline_feature: number of the BM25-like feature, counted from 1.
        features: the features, in order.
    """

    name: str
    queries: int
    mean_candidates: int
    candidate_quantiles: tuple[tuple[float, float], ...]
    label_shares: tuple[float, ...]
    query_spread: float
    linear: float
    interaction: float
    baseline_clarity: float
    baseline_feature: int
    features: tuple[SyntheticFeature, ...]

    @property
    def n_features(self) -> int:
        """Number of features, constant ones included."""
        return len(self.features)

    @property
    def max_label(self) -> int:
        """The largest label."""
        return len(self.label_shares) - 1

    @property
    def size(self) -> Size:
        """Queries at scale 1, and the rows that are expected of them."""
        return Size(self.queries, self.queries * self.mean_candidates)


# Secant steps on two reserved seeds, with some 7,000 to 13,000 queries each, found `linear`
# and `baseline_clarity`: the NDCG@5 on the test queries had to be that of BM25 in the paper's table
# for the baseline and, for least squares on the prepared features, .005 to .010 more than that of
# CFTopK without behavior, which has only clicks to learn from. They reached
#
#     mq2007-like   BM25 .474, least squares .600   (paper .474, .591; random order .391)
#     mslr10k-like  BM25 .449, least squares .515   (paper .449, .510; random order .380)
#     mslr30k-like  BM25 .451, least squares .511   (paper .451, .506; random order .380)
#
# Small sets teach a linear model less, and measure it less well: on mq2007-like×0.05, with 49
# training and 17 test queries, least squares reaches .55 on average, with a deviation of .05.

MQ2007_LIKE = SyntheticPreset(
    name="mq2007-like",
    queries=1643,
    mean_candidates=41,
    candidate_quantiles=((0.0, 6), (0.06, 14), (0.15, 40), (0.85, 40), (0.95, 65), (1.0, 147)),
    label_shares=(0.74, 0.20, 0.06),
    query_spread=0.75,
    linear=0.284,
    interaction=0.05,
    baseline_clarity=0.587,
    baseline_feature=25,
    features=LETOR_FEATURES,
)


def _mslr_like(
    name: str,
    queries: int,
    mean_candidates: int,
    upper_quartile: int,
    linear: float,
    baseline_clarity: float,
) -> SyntheticPreset:
    """Return a preset like one of the MSLR sets, which differ mainly in size."""
    return SyntheticPreset(
        name=name,
        queries=queries,
        mean_candidates=mean_candidates,
        candidate_quantiles=(
            *((0.0, 6), (0.05, 42), (0.10, 55), (0.25, 80), (0.50, 105)),
            *((0.75, upper_quartile), (0.90, 186), (0.98, 315), (1.0, 900)),
        ),
        label_shares=(0.52, 0.32, 0.13, 0.022, 0.008),
        query_spread=0.55,
        linear=linear,
        interaction=0.10,
        baseline_clarity=baseline_clarity,
        baseline_feature=110,
        features=MSLR_FEATURES,
    )


MSLR10K_LIKE = _mslr_like("mslr10k-like", 9835, 122, 141, 0.139, 0.730)
MSLR30K_LIKE = _mslr_like("mslr30k-like", 30995, 121, 136, 0.131, 0.790)

# Not fitted to anything: a few queries, each with as many candidates as a shop's search for a
# common word, of which 20 or so are perfect.
MANY_CANDIDATES = replace(
    MQ2007_LIKE,
    name="many-candidates",
    queries=50,
    mean_candidates=5000,
    candidate_quantiles=((0.0, 2000), (0.5, 5000), (1.0, 8000)),
    label_shares=(0.97, 0.026, 0.004),
)

SPLIT_SHARES = (0.6, 0.2)
"""Of training and validation queries; the others are for testing."""


def split_queries(queries: int) -> Labels:
    """Return the split of each query: contiguous, none of them empty."""
    train, vali = (max(1, round(share * queries)) for share in SPLIT_SHARES)
    return np.repeat(np.arange(3, dtype=np.int8), [train, vali, queries - train - vali])


def stream(name: str, seed: int, *key: int) -> np.random.Generator:
    """Return the random stream of a dataset, or of one part of it."""
    sequence = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()), *key))
    return np.random.Generator(np.random.SFC64(sequence))


PRESETS = MappingProxyType(
    {p.name: p for p in (MQ2007_LIKE, MSLR10K_LIKE, MSLR30K_LIKE, MANY_CANDIDATES)}
)
"""The synthetic datasets, by name."""
