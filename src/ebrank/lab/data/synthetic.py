"""Synthetic datasets: the embedded default, which imitates MQ2007 and the MSLR sets.

A document's relevance is a weighted sum of hidden factors, an interaction of two factors that
linear models cannot see, and a part that no feature shows. Together with the ease of its query, it
determines the label. Features are noisy, skewed, often zero views of the factors
(`presets`). How much of the relevance they show, and how clearly the BM25-like one does,
was fitted (`presets`) so that a linear model and BM25 rank about as well as on the real sets.

>>> dataset = generate("mq2007-like", scale=0.01)
>>> dataset
Dataset('mq2007-like×0.01', queries=16, rows=..., features=46, max_label=2)

The same preset, options and seed give the same bits on any processor and any number of threads:
each block of queries draws from its own stream, and arithmetic is done as written.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels.compiled import exact
from ebrank.kernels.threads import map_blocks
from ebrank.lab.data.dataset import SPLITS, Dataset
from ebrank.lab.data.presets import (
    FACTORS,
    INTERACTION,
    MORE_INTERACTIONS,
    PRESETS,
    RELEVANCE,
    SyntheticPreset,
    split_queries,
    stream,
)
from ebrank.lab.data.shop import ShopLike
from ebrank.parameters import check_number, check_whole, require
from ebrank.typing import Bools, Features, Floats, Ints, Labels

__all__ = ["PRESETS", "SyntheticPreset", "generate"]

LARGEST_SCALE = 10.0
FEWEST_QUERIES = 5
QUERIES_PER_BLOCK = 32
LOG2_E = 1.4426950408889634
LOG_2 = 0.6931471805599453
QUERY_FACTOR_SPREAD = 0.8
"""Standard deviation of a query's shift of each factor: features have different levels in different
queries, and may be zero throughout a query."""


def generate(
    preset: str,
    *,
    scale: float = 1.0,
    interactions: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Return a synthetic dataset with raw features, constant ones included.

    Args:
        preset: a name in `PRESETS`, or `shop-like`, which may have parameters
            (`ebrank.lab.data.shop`).
        scale: how many queries, as a multiple of the preset's; queries keep their size.
        interactions: share, from 0 to 1, of the linear signal to move into products of features,
            which trees can learn and linear models cannot.
        seed: a whole number ≥ 0; each gives a different dataset.

    Every query has more than 5 candidates and every test query a relevant one, so preparation keeps
    them all. Queries are in the order train (60 %), vali (20 %), test (20 %).
    """
    check_number("scale", scale, above=0)
    require(scale <= LARGEST_SCALE, f"scale must be at most {LARGEST_SCALE:g}, not {scale}")
    check_number("interactions", interactions, at_least=0)
    require(interactions <= 1.0, f"interactions must be at most 1, not {interactions}")
    check_whole("seed", seed, at_least=0)
    if preset.partition(":")[0] == ShopLike.name:
        if interactions:
            raise ParameterError(f"{ShopLike.name} has no interactions; leave them out")
        return ShopLike.parse(preset).generate(scale=scale, seed=seed)
    if preset not in PRESETS:
        names = ", ".join([*PRESETS, ShopLike.name])
        raise ParameterError(f"no preset {preset!r}; choose one of {names}")
    chosen = PRESETS[preset]
    size = "" if scale == 1.0 else f"×{scale:g}"
    products = f"-interactions{interactions:g}" if interactions else ""
    splits = split_queries(max(FEWEST_QUERIES, round(chosen.queries * scale)))
    plan = _plan(chosen, splits, seed)
    features, labels = _documents(chosen, plan, interactions, seed)
    return Dataset(
        name=f"{chosen.name}{size}{products}",
        features=features,
        labels=labels,
        query_pointers=plan.pointers,
        query_ids=np.arange(1, len(splits) + 1).astype(np.str_),
        query_splits=splits,
        baseline=features[:, chosen.baseline_feature - 1].copy(),
        feature_ids=np.arange(1, chosen.n_features + 1, dtype=np.int32),
        max_label=chosen.max_label,
    )


# --- queries ---------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """What is decided about the queries before any document is drawn."""

    pointers: Ints
    ease: Features
    needs_relevant: Bools


def _plan(preset: SyntheticPreset, splits: Labels, seed: int) -> _Plan:
    rng = stream(preset.name, seed, 0)
    sizes = np.bincount(splits)
    probability, candidates = np.array(preset.candidate_quantiles).T
    quantiles = np.concatenate([_stratified(rng, size) for size in sizes])
    counts = np.rint(np.exp(np.interp(quantiles, probability, np.log(candidates))))
    normal = NormalDist(sigma=preset.query_spread)
    ease = [normal.inv_cdf(u) for size in sizes for u in _stratified(rng, size)]
    return _Plan(
        pointers=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        ease=np.array(ease, np.float32),
        needs_relevant=splits == SPLITS.index("test"),
    )


def _stratified(rng: np.random.Generator, n: int) -> Floats:
    """Return n numbers in (0, 1), one in each n-th of it, in random order.

    Even a small set then has easy and hard, short and long queries in the right proportion.
    """
    return (rng.permutation(n) + 1.0 - rng.random(n)) / (n + 1e-9)


# --- documents -------------------------------------------------------------------------------


def _documents(
    preset: SyntheticPreset, plan: _Plan, interactions: float, seed: int
) -> tuple[Features, Labels]:
    """Return the features and labels of all documents."""
    rows = int(plan.pointers[-1])
    features = np.empty((rows, preset.n_features), np.float32)
    labels = np.empty(rows, np.int8)
    weights, noise, shapes = _recipe(preset)
    thresholds = _thresholds(preset)

    def fill(start: int, stop: int) -> None:
        rng = stream(preset.name, seed, 1, start // QUERIES_PER_BLOCK)
        pointers = plan.pointers[start : stop + 1]
        block, local = slice(int(pointers[0]), int(pointers[-1])), pointers - pointers[0]
        factors = rng.standard_normal((int(local[-1]), len(FACTORS)), np.float32)
        factors[:, FACTORS.index("rarity")] = 0.0  # all documents of a query share it
        shifts = rng.standard_normal((stop - start, len(FACTORS)), np.float32)
        shifts *= QUERY_FACTOR_SPREAD
        relevance = _relevance(preset, interactions, factors, rng)
        ease, needs_relevant = plan.ease[start:stop], plan.needs_relevant[start:stop]
        grade(local, ease, needs_relevant, relevance, thresholds, labels[block])
        rng.standard_normal(dtype=np.float32, out=features[block])  # noise, worked on in place
        express(local, factors, shifts, weights, noise, shapes, features[block])

    map_blocks(fill, total=len(plan.ease), block=QUERIES_PER_BLOCK)
    return features, labels


def _relevance(
    preset: SyntheticPreset, interactions: float, factors: Features, rng: np.random.Generator
) -> Features:
    """Return the relevance of each document: of unit variance, and normal by construction.

    The interaction a·sign(b) of two normal factors is normal and uncorrelated with both.
    """
    relevance = rng.standard_normal(len(factors), np.float32)
    relevance *= (1.0 - preset.linear - preset.interaction) ** 0.5
    linear = preset.linear * (1.0 - interactions)
    for pair in MORE_INTERACTIONS:
        own = preset.interaction if pair == INTERACTION else 0.0
        share = own + preset.linear * interactions / len(MORE_INTERACTIONS)
        if share > 0.0:
            a, b = (factors[:, FACTORS.index(name)] for name in pair)
            relevance += share**0.5 * (np.copysign(1.0, b, dtype=np.float32) * a)
    norm = sum(weight**2 for weight in RELEVANCE.values()) ** 0.5
    for name, weight in RELEVANCE.items():
        relevance += (linear**0.5 * weight / norm) * factors[:, FACTORS.index(name)]
    return relevance


def _thresholds(preset: SyntheticPreset) -> Features:
    """Return the levels of relevance + ease from which labels 1, 2, ... start."""
    normal = NormalDist(sigma=(1.0 + preset.query_spread**2) ** 0.5)
    below = np.cumsum(preset.label_shares)[:-1]
    return np.array([normal.inv_cdf(share) for share in below], np.float32)


def _recipe(preset: SyntheticPreset) -> tuple[Features, Features, Features]:
    """Return each feature's weights of the factors and of its own noise, and its shape.

    Weights are such that the latent value has unit variance within a query.
    """
    weights = np.zeros((len(FACTORS), preset.n_features), np.float32)
    noise = np.zeros(preset.n_features, np.float32)
    shapes = np.empty((6, preset.n_features), np.float32)
    for column, feature in enumerate(preset.features):
        own = [weight for name, weight in feature.factors if name != "rarity"]
        norm = (sum(weight**2 for weight in own) + feature.noise**2) ** 0.5 or 1.0
        for name, weight in feature.factors:
            weights[FACTORS.index(name), column] = weight / norm
        noise[column] = feature.noise / norm
        shapes[:, column] = (
            *(feature.cut, feature.tail, feature.scale),
            *(feature.step, feature.ceiling, feature.offset),
        )
    baseline = preset.baseline_feature - 1
    match = (weights[:, baseline] ** 2).sum() ** 0.5
    weights[:, baseline] *= preset.baseline_clarity / match
    noise[baseline] = (1.0 - preset.baseline_clarity**2) ** 0.5
    return weights, noise, shapes


# --- compiled ------------------------------------------------------------------------------------
# Nothing here depends on the processor: arithmetic is done as written (`exact`), and the
# exponential is our own, because platforms round theirs differently.


@exact
def grade(
    pointers: Ints,
    ease: Features,
    needs_relevant: Bools,
    relevance: Features,
    thresholds: Features,
    labels: Labels,
) -> None:
    """Set each label to the number of thresholds below the document's relevance + its query's ease.

    If a query must have a relevant document and has none, its most relevant one gets label 1.
    """
    for q in range(len(ease)):
        best = pointers[q]
        relevant = False
        for row in range(pointers[q], pointers[q + 1]):
            label = 0
            for threshold in thresholds:
                label += relevance[row] + ease[q] > threshold
            labels[row] = label
            relevant |= label > 0
            if relevance[row] > relevance[best]:
                best = row
        if needs_relevant[q] and not relevant:
            labels[best] = 1


@exact
def express(
    pointers: Ints,
    factors: Features,
    query_factors: Features,
    weights: Features,
    noise: Features,
    shapes: Features,
    features: Features,
) -> None:
    """Turn `features`, given as standard normal noise, into feature values, in place.

    The latent value of feature f is noise[f]·features[row, f] + Σ_k weights[k, f]·(factors[row, k]
    + query_factors[q, k]); `shapes` holds cut, tail, scale, step, ceiling, offset, in this order.
    """
    n_factors, n_features = weights.shape
    latent = np.empty(n_features, np.float32)
    for q in range(len(query_factors)):
        for row in range(pointers[q], pointers[q + 1]):
            values = features[row]
            for f in range(n_features):
                latent[f] = noise[f] * values[f]
            for k in range(n_factors):
                factor = factors[row, k] + query_factors[q, k]
                for f in range(n_features):
                    latent[f] += weights[k, f] * factor
            for f in range(n_features):
                values[f] = _shaped(latent[f], shapes[:, f])


@exact
def _shaped(latent: np.float32, shape: Features) -> np.float32:
    """Return the value of a feature with this shape; see `presets.SyntheticFeature`."""
    cut, tail, scale, step, ceiling, offset = shape
    value = max(latent - cut, np.float32(0.0))
    if tail > 0:
        value = np.float32((_exp(tail * value) - 1.0) / tail)
    value = min(scale * value, ceiling)
    if step > 0:
        value = np.floor(value / step) * step
    return np.float32(offset + value)


@exact
def _exp(x: float) -> float:
    """Return e^x to eight digits, for 0 ≤ x < 700: 2^k times a polynomial in the rest."""
    k = np.floor(x * LOG2_E + 0.5)
    r = x - k * LOG_2
    p = 1 / 5040
    for inverse in (1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0, 1.0):
        p = p * r + inverse
    return p * np.int64((np.int64(k) + 1023) << 52).view(np.float64)
