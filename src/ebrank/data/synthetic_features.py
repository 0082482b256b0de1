"""What the documents of the synthetic sets are made of, and the features that show it.

A document has hidden *factors*: how well it, and each of its five text streams, matches the query's
topic; how long each stream is; how well linked, how good, how deep in its site it is. Each feature
is a noisy view of a few factors. As in LETOR, term frequencies, TF·IDF, BM25 and language models of
the same stream nearly repeat each other, and some features are useless.

>>> LETOR_FEATURES[24].name, len(LETOR_FEATURES)
('BM25, whole document', 46)
>>> MSLR_FEATURES[109].name, len(MSLR_FEATURES)
('BM25, whole document', 133)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

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
"""Hidden traits of a document; "rarity" is that of the query's terms, so all documents share it."""

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
class Feature:
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


@dataclass(frozen=True, kw_only=True)
class StreamFeature:
    """A feature computed for each stream; `match`, `length`, `rarity` weigh the stream's factors.

    `sparsity` is added to the stream's cut; the rest is as in `Feature`.
    """

    name: str
    match: float = 0.0
    length: float = 0.0
    rarity: float = 0.0
    noise: float = 0.2
    tail: float = 0.0
    scale: float = 1.0
    step: float = 0.0
    ceiling: float = float("inf")
    offset: float = 0.0
    sparsity: float = 0.0


TOPICALITY = (0.75, 0.60, 0.65, 0.20, 0.80)
"""How much the match of each stream comes from the topic rather than from the stream alone."""

STREAM_CUT = (-2.0, 0.8, -1.0, 0.6, -2.2)
"""Documents with a lower latent value have a zero: few have anchor texts, most have a body."""

STREAM_SCALE = (400.0, 12.0, 6.0, 4.0, 450.0)
"""Typical length of each stream, in words."""

COVERED = StreamFeature(name="covered query terms", match=0.8, noise=0.3, scale=1.2, step=1.0)
COVERAGE = StreamFeature(
    name="covered query term ratio", match=0.8, noise=0.3, scale=0.3, step=0.05, ceiling=1.0
)
LENGTH = StreamFeature(name="stream length", length=1.0, noise=0.1, tail=0.9, step=1.0)
IDF = StreamFeature(name="IDF", rarity=1.0, noise=0.0, scale=3.0)
TF = StreamFeature(
    name="term frequency", match=0.7, length=0.4, noise=0.15, tail=0.8, scale=3.0, step=1.0
)
TFIDF = StreamFeature(
    name="TF·IDF", match=0.7, length=0.4, rarity=0.5, noise=0.15, tail=0.8, scale=12.0
)
BM25 = StreamFeature(name="BM25", match=0.95, noise=0.12, tail=0.2, scale=6.0)
LM_ABSOLUTE = StreamFeature(
    name="language model, absolute discount",
    match=0.8,
    length=-0.3,
    noise=0.12,
    scale=4.0,
    offset=-30.0,
)
LM_DIRICHLET = StreamFeature(
    name="language model, Dirichlet", match=0.8, length=-0.4, noise=0.12, scale=3.5, offset=-28.0
)
LM_JELINEK = StreamFeature(
    name="language model, Jelinek–Mercer",
    match=0.8,
    length=-0.2,
    noise=0.2,
    scale=5.0,
    offset=-32.0,
)
BOOLEAN = StreamFeature(
    name="Boolean match", match=0.7, noise=0.4, scale=1e6, ceiling=1.0, step=1.0, sparsity=1.5
)
VECTOR_SPACE = StreamFeature(
    name="vector space", match=0.8, length=0.2, noise=0.15, tail=0.5, scale=0.3
)


def _aggregates(
    of: str, length: float, rarity: float, scale: float, step: float
) -> tuple[StreamFeature, ...]:
    """Return sum, minimum, maximum, mean, variance of a term statistic over the query's terms."""
    rows = (
        ("sum", 0.1, 0.8, 1.0, 0.0),
        ("minimum", 0.5, 0.7, 0.3, 0.8),
        ("maximum", 0.2, 0.9, 0.8, 0.0),
        ("mean", 0.1, 0.8, 0.5, 0.0),
        ("variance", 0.4, 1.6, 0.8, 0.4),
    )
    return tuple(
        StreamFeature(
            name=f"{name} of {of}",
            match=0.7,
            length=length,
            rarity=rarity,
            noise=noise,
            tail=tail,
            scale=scale * share,
            step=step if name in ("sum", "minimum", "maximum") else 0.0,
            sparsity=sparsity,
        )
        for name, noise, tail, share, sparsity in rows
    )


def _per_stream(kinds: tuple[StreamFeature, ...]) -> Iterator[Feature]:
    """Yield the five features of each kind, stream by stream."""
    for kind in kinds:
        for stream, topicality, cut, words in zip(
            STREAMS, TOPICALITY, STREAM_CUT, STREAM_SCALE, strict=True
        ):
            yield Feature(
                name=f"{kind.name}, {stream}",
                factors=(
                    ("topic", kind.match * topicality),
                    (f"match {stream}", kind.match * (1.0 - topicality**2) ** 0.5),
                    (f"length {stream}", kind.length),
                    ("rarity", kind.rarity),
                ),
                noise=kind.noise,
                cut=-4.0 if kind is IDF else cut + kind.sparsity,
                tail=kind.tail,
                scale=words if kind is LENGTH else kind.scale,
                step=kind.step,
                ceiling=kind.ceiling,
                offset=kind.offset,
            )


SLASHES = Feature(name="slashes in URL", factors=(("depth", 0.9),), noise=0.4, cut=-2.5, step=1.0)
URL_LENGTH = Feature(
    name="length of URL",
    factors=(("depth", 0.7),),
    noise=0.7,
    cut=-3.0,
    tail=0.3,
    scale=12.0,
    step=1.0,
)
IN_LINKS = Feature(
    name="in-links", factors=(("links", 0.8),), noise=0.6, cut=-0.2, tail=1.6, scale=3.0, step=1.0
)
OUT_LINKS = Feature(name="out-links", factors=(), noise=1.0, cut=0.0, tail=1.4, scale=4.0, step=1.0)
NO_OUT_LINKS = Feature(name="out-links", factors=(), noise=0.0, cut=0.0)
PAGE_RANK = Feature(
    name="PageRank", factors=(("links", 0.8),), noise=0.6, tail=0.7, scale=300.0, step=1.0
)
SITE_RANK = Feature(
    name="SiteRank", factors=(("links", 0.5),), noise=0.8, tail=0.4, scale=9000.0, step=1.0
)
CHILD_PAGES = Feature(
    name="child pages",
    factors=(("depth", -0.3),),
    noise=0.9,
    cut=1.0,
    tail=1.8,
    scale=2.0,
    step=1.0,
)
QUALITY = Feature(
    name="quality score",
    factors=(("quality", 0.9),),
    noise=0.4,
    scale=30.0,
    step=1.0,
    ceiling=255.0,
)
QUALITY_TOO = Feature(
    name="quality score 2", factors=(("quality", 0.6),), noise=0.8, tail=0.4, scale=12.0, step=1.0
)

LANGUAGE_MODELS = (LM_ABSOLUTE, LM_DIRICHLET, LM_JELINEK)

LETOR_FEATURES = (
    *_per_stream((TF, IDF, TFIDF, LENGTH, BM25, *LANGUAGE_MODELS)),
    *(PAGE_RANK, IN_LINKS, NO_OUT_LINKS, SLASHES, URL_LENGTH, CHILD_PAGES),
)
"""The 46 features of LETOR 4.0 (MQ2007), in its order; six are constant within a query."""

MSLR_FEATURES = (
    *_per_stream(
        (
            *(COVERED, COVERAGE, LENGTH, IDF),
            *_aggregates("term frequency", length=0.4, rarity=0.0, scale=4.0, step=1.0),
            *_aggregates("term frequency per word", length=-0.3, rarity=0.0, scale=0.02, step=0.0),
            *_aggregates("TF·IDF", length=0.4, rarity=0.5, scale=20.0, step=0.0),
            *(BOOLEAN, VECTOR_SPACE, BM25, *LANGUAGE_MODELS),
        )
    ),
    *(SLASHES, URL_LENGTH, IN_LINKS, OUT_LINKS, PAGE_RANK, SITE_RANK, QUALITY, QUALITY_TOO),
)
"""Features 1 to 133 of MSLR-WEB10K and 30K, in their order: all but the behavior features."""
