"""Significance letters: rankers that share a letter do not differ significantly.

With m rankers there are m·(m − 1)/2 comparisons, too many to read. A compact letter display (Piepho
2004) shows them all with a few letters beside each ranker, found here in polynomial time:

>>> letters([0.50, 0.70, 0.68, 0.61], different=[(0, 1), (0, 2), (1, 3)])
['c', 'a', 'ab', 'bc']

The ranker at 0.70 is better than those at 0.50 and 0.61, with which it shares no letter; the one at
0.68 differs from neither of its neighbors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement
from string import ascii_lowercase

Group = frozenset[int]


def letters(means: Sequence[float], different: Iterable[tuple[int, int]]) -> list[str]:
    """Return the letters of each ranker: two share one if and only if they are not `different`.

    Args:
        means: a finite number for each ranker; the letter `a` goes to the highest.
        different: pairs of indices whose difference is significant, in any order.

    No letter can be left out. After `z` come `aa`, `ab` and so on, and a ranker's letters are then
    separated by spaces.
    """
    order = sorted(range(len(means)), key=lambda index: (-means[index], index))
    place = {index: rank for rank, index in enumerate(order)}
    groups = _groups(len(means), {frozenset((place[i], place[j])) for i, j in different})
    groups.sort(key=sorted)  # the group of the best comes first
    names = [letter(number) for number in range(len(groups))]
    joint = "" if len(names) <= len(ascii_lowercase) else " "
    return [
        joint.join(name for name, group in zip(names, groups, strict=True) if place[index] in group)
        for index in range(len(means))
    ]


def letter(number: int) -> str:
    """Return a, b, ..., z, aa, ab, ...

    >>> letter(0), letter(25), letter(26)
    ('a', 'z', 'aa')
    """
    more, last = divmod(number, len(ascii_lowercase))
    return (letter(more - 1) if more else "") + ascii_lowercase[last]


def _groups(n: int, different: set[Group]) -> list[Group]:
    """Return sets of rankers, numbered from the best, that share a letter.

    All sets without a differing pair would be too many: their number may double with every second
    ranker. So each ranker in turn looks for the furthest one with which it must still share a
    letter, and the two take in all that differ from none of the set, first those between them. If
    rankers differ if and only if they are far enough apart, this is Piepho's display.
    """
    covered: set[Group] = set()
    groups: list[Group] = []
    for first in range(n):
        for last in range(n - 1, first - 1, -1):  # itself last: it may share with none
            pair = frozenset((first, last))
            if pair in covered or pair in different:
                continue
            group = _grown(first, last, n, different)
            covered |= {frozenset((a, b)) for a in group for b in group}
            groups.append(group)
    return _needed(groups)


def _grown(first: int, last: int, n: int, different: set[Group]) -> Group:
    """Return a largest set that holds two rankers and no differing pair."""
    group = {first, last}
    for ranker in (*range(first + 1, last), *range(last + 1, n), *range(first)):
        if not any(frozenset((ranker, other)) in different for other in group):
            group.add(ranker)
    return frozenset(group)


def _needed(groups: list[Group]) -> list[Group]:
    """Return the sets, without those whose pairs and members are all in other sets too."""
    held = Counter(frozenset((a, b)) for group in groups for a, b in _pairs(group))
    kept = []
    for group in sorted(groups, key=lambda group: (len(group), sorted(group))):
        pairs = [frozenset(pair) for pair in _pairs(group)]
        if min(held[pair] for pair in pairs) > 1:
            held.subtract(pairs)
        else:
            kept.append(group)
    return kept


def _pairs(group: Group) -> Iterator[tuple[int, int]]:
    """Yield every pair of a set once, including each member with itself."""
    return combinations_with_replacement(sorted(group), 2)
