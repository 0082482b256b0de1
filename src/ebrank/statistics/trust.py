"""The weight of features in a score: how far each feature, or group of features, moves it.

The share of a group is the standard deviation of how far scores move if its features are replaced
by their means, divided by the sum of these over all groups. For one feature of a linear score this
is |w|·sd. Columns of one embedding are one group: their weights mean little one by one.

>>> rng = np.random.default_rng(0)
>>> features = rng.random((1000, 3)).astype(np.float32)
>>> trust(lambda x: 3.0 * x[:, 0] - x[:, 1], features, [[0], [1], [2]]).round(2)
array([0.76, 0.24, 0.  ])
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ebrank.typing import Features, Floats

_NUMBERED = re.compile(r"(.*?\D)[_\-. \[]?\d+\]?")


def trust(
    score: Callable[[Features], Floats], features: Features, groups: Sequence[Sequence[int]]
) -> Floats:
    """Return the share of each group of columns; all 0 if scores do not differ.

    Args:
        score: returns the score of each row of features.
        features: rows as the score gets them, shape (rows, features).
        groups: the columns of each group.
    """
    moves = np.zeros(len(groups))
    if len(features):
        whole, means, without = score(features), features.mean(axis=0), features.copy()
        for place, columns in enumerate(groups):
            without[:, columns] = means[columns]
            moves[place] = np.std(whole - score(without))
            without[:, columns] = features[:, columns]
    total = moves.sum()
    return moves / total if total > 0.0 else moves


def embedded(names: Sequence[str], fewest: int = 8) -> dict[str, list[int]]:
    """Return columns by name; those that differ only in a number at the end are one embedding.

    They stay apart if they are fewer than `fewest`, or all there is: then numbers are just names.

    >>> embedded(["price", "emb_0", "emb_1", "stars_1"], fewest=2)
    {'price': [0], 'emb': [1, 2], 'stars_1': [3]}
    >>> embedded(["f1", "f2"], fewest=2)
    {'f1': [0], 'f2': [1]}
    """
    stems = [match[1] if (match := _NUMBERED.fullmatch(name)) else name for name in names]
    many = {stem for stem, count in Counter(stems).items() if fewest <= count < len(names)}
    groups: dict[str, list[int]] = {}
    for column, (name, stem) in enumerate(zip(names, stems, strict=True)):
        groups.setdefault(stem if stem in many else name, []).append(column)
    return groups
