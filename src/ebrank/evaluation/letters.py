"""Significance letters: rankers that share a letter do not differ significantly.

With m rankers there are m·(m − 1)/2 comparisons, too many to read. A compact letter display (Piepho
2004) tells them all by a few letters beside each ranker:

>>> letters([0.50, 0.70, 0.68, 0.61], different=[(0, 1), (0, 2), (1, 3)])
['c', 'a', 'ab', 'bc']

The ranker at 0.70 is better than those at 0.50 and 0.61, with which it shares no letter; that at
0.68 differs from neither of its neighbors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from string import ascii_lowercase

from ebrank.errors import ParameterError

Group = frozenset[int]


def letters(means: Sequence[float], different: Iterable[tuple[int, int]]) -> list[str]:
    """Return the letters of each ranker: two share one if and only if they are not `different`.

    Args:
        means: one number for each ranker; the letter `a` goes to the highest.
        different: pairs of indices whose difference is significant, in any order.

    No letter can be left out. After `z` come `aa`, `ab` and so on, and a ranker's letters are then
    separated by spaces.
    """
    if not all(map(math.isfinite, means)):
        raise ParameterError("means must be finite numbers")
    pairs = _checked(len(means), different)
    order = sorted(range(len(means)), key=lambda index: (-means[index], index))
    place = {index: rank for rank, index in enumerate(order)}
    groups = [{place[index] for index in group} for group in _groups(len(means), pairs)]
    groups.sort(key=sorted)  # the group of the best comes first
    names = [_name(number) for number in range(len(groups))]
    joint = "" if len(names) <= len(ascii_lowercase) else " "
    return [
        joint.join(name for name, group in zip(names, groups, strict=True) if place[index] in group)
        for index in range(len(means))
    ]


def _groups(n: int, pairs: Iterable[tuple[int, int]]) -> list[Group]:
    """Return the sets of rankers that are to share a letter, by inserting and absorbing.

    Begin with one set of all. A pair that differs splits each set that holds both into one without
    the first and one without the second; a set within another is absorbed. What remains are all
    largest sets without a differing pair; those whose every pair is told by others are dropped.
    """
    groups: set[Group] = {frozenset(range(n))} if n else set()
    for first, second in pairs:
        split = {group for group in groups if first in group and second in group}
        halves = {group - {out} for group in split for out in (first, second)}
        groups = _largest((groups - split) | halves)
    return _needed(groups)


def _largest(groups: set[Group]) -> set[Group]:
    """Return the sets that are not part of another."""
    return {group for group in groups if not any(group < other for other in groups)}


def _needed(groups: set[Group]) -> list[Group]:
    """Return the sets without those whose every pair, and member, is also in another one."""
    kept = sorted(groups, key=lambda group: (-len(group), sorted(group)))
    for group in reversed(list(kept)):
        others = [other for other in kept if other is not group]
        if all(any({a, b} <= other for other in others) for a in group for b in group):
            kept = others
    return kept


def _name(number: int) -> str:
    """Return a, b, ..., z, aa, ab, ..."""
    more, last = divmod(number, len(ascii_lowercase))
    return (_name(more - 1) if more else "") + ascii_lowercase[last]


def _checked(n: int, different: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs, each once, or raise what is wrong with one."""
    pairs = set()
    for first, second in different:
        if not (0 <= first < n and 0 <= second < n and first != second):
            raise ParameterError(f"({first}, {second}) is no pair of two of {n} rankers")
        pairs.add((min(first, second), max(first, second)))
    return sorted(pairs)
