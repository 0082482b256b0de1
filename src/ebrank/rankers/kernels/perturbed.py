"""Formulas that draw: a new score for every item in every session."""

from __future__ import annotations

import numpy as np

from ebrank import streams


def random_score(key: np.uint64) -> float:
    """Return a uniform draw."""
    return streams.uniform(key)


def exposure_perturbed(
    a: float,
    b: float,
    shown: float,
    clicks: float,
    exposure: float,
    w: float,
    noise: float,
    key: np.uint64,
) -> float:
    """Return a + w·x^b + noise·U with x^b = c/E, or b where the item was never shown."""
    return a + w * (clicks / exposure if shown > 0.0 else b) + noise * streams.uniform(key)


def ips_perturbed(
    a: float, b: float, shown: float, weighted_clicks: float, w: float, noise: float, key: np.uint64
) -> float:
    """Return a + w·x^b + noise·U with x^b = C/n, or b where the item was never shown."""
    return a + w * (weighted_clicks / shown if shown > 0.0 else b) + noise * streams.uniform(key)


def shuffled(a: float, key: np.uint64) -> float:
    """Return a + U: whole numbers a keep their order, and equal ones are shuffled."""
    return a + streams.uniform(key)
