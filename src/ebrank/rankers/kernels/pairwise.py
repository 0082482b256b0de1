"""PDGD's gradient (Oosterhuis and de Rijke 2018), from one list and its clicks.

A list R of items is drawn without replacement from the softmax of the scores f. A clicked item d is
preferred to every item e that was passed over: not clicked, and no further down than the first
place below the last click. Its pair adds

    ρ · e^{f_d} e^{f_e} / (e^{f_d} + e^{f_e})² · (∇f_d − ∇f_e),    ρ = P(R*)/(P(R) + P(R*)),

where R* is R with the two items swapped and P the probability of drawing a list. ρ removes the bias
of comparing items that the ranker itself ordered. All sums of exponentials are kept as logarithms.
"""

from __future__ import annotations

import numpy as np

from ebrank.compiled import inner, kernel
from ebrank.typing import Bools, Features, Floats, Ints


@inner
def log_add(x: float, y: float) -> float:
    """Return log(eˣ + eʸ); −∞ stands for nothing."""
    high, low = max(x, y), min(x, y)
    if low == -np.inf:
        return high
    return high + float(np.log1p(np.exp(low - high)))


@inner
def sigmoid(x: float) -> float:
    """Return 1/(1 + e⁻ˣ) for any x."""
    z = float(np.exp(-abs(x)))
    return 1.0 / (1.0 + z) if x >= 0.0 else z / (1.0 + z)


@inner
def write_log_tails(scores: Floats, length: int, log_rest: float, tails: Floats) -> None:
    """Write at each rank the log of Σ e^f over the items that could still be drawn there.

    `scores` are those of the list; `log_rest` is the log of Σ e^f over the items not in it.
    """
    tails[length] = log_rest
    for rank in range(length - 1, -1, -1):
        tails[rank] = log_add(tails[rank + 1], scores[rank])


@inner
def swap_weight(scores: Floats, tails: Floats, i: int, j: int) -> float:
    """Return ρ = P(R*)/(P(R) + P(R*)) for the swap of ranks i < j.

    Both lists draw the same items, so they differ only in what could still be drawn below rank i:
    there R* can still draw the item of rank i, but no longer that of rank j.
    """
    log_ratio = 0.0
    swapped = log_add(tails[j + 1], scores[i])
    for rank in range(j, i, -1):
        if rank < j:
            swapped = log_add(swapped, scores[rank])
        log_ratio += tails[rank] - swapped
    return sigmoid(log_ratio)


@inner
def considered(clicked: Bools, length: int) -> int:
    """Return how many items from the top were looked at: down to one below the last click."""
    for rank in range(length - 1, -1, -1):
        if clicked[rank]:
            return min(rank + 2, length)
    return 0


@inner
def write_item_weights(
    scores: Floats, tails: Floats, examination: Floats, clicked: Bools, length: int, weights: Floats
) -> bool:
    """Write the factor of each listed item's ∇f in the gradient; return whether there is a pair.

    An item at a rank that nobody examines was not passed over.
    """
    any_pair = False
    for rank in range(length):
        weights[rank] = 0.0
    looked_at = considered(clicked, length)
    for better in range(looked_at):
        if not clicked[better]:
            continue
        for worse in range(looked_at):
            if clicked[worse] or examination[worse] == 0.0:
                continue
            lead = sigmoid(scores[better] - scores[worse])
            slope = lead * sigmoid(scores[worse] - scores[better])
            rho = swap_weight(scores, tails, min(better, worse), max(better, worse))
            weights[better] += rho * slope
            weights[worse] -= rho * slope
            any_pair = True
    return any_pair


@kernel
def gradient_sum(
    features: Features,
    rows: Ints,
    weights: Floats,
    behavior: Floats,
    rates: Floats,
    n: int,
    start: int,
    stop: int,
) -> Floats:
    """Return Σ_t rate_t Σ_d weight_d · x_d over the sessions start..stop; x^b is the last of n."""
    n_features = features.shape[1]
    total = np.zeros(n)
    for t in range(start, stop):
        if rates[t] == 0.0:
            continue
        for rank in range(rows.shape[1]):
            factor = rates[t] * weights[t, rank]
            if factor != 0.0:
                row = rows[t, rank]
                for j in range(n_features):
                    total[j] += factor * features[row, j]
                if n > n_features:
                    total[n_features] += factor * behavior[t, rank]
    return total
