"""DBGD, MGD, PDGD and TopRank in plain Python, learning after every session, in order of time.

Two weight vectors of floats: the logging model makes the lists until the next update, the learning
model steps after every session. Lists of probabilities are products of fractions, as in the papers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ebrank.lab.rankers.base import fixed_model
from ebrank.lab.rankers.dbgd import DBGD, MGD
from ebrank.lab.rankers.pdgd import PDGD
from ebrank.testing import plain
from tests.lab.simulation.reference import Reference
from tests.lab.simulation.state import Item, Query, Session, ranking

Vector = list[float]
Pair = tuple[int, int]


@dataclass
class OnlineReference(Reference):
    """What the three rankers share."""

    learning: Vector = field(default_factory=list)
    logging: Vector = field(default_factory=list)
    rate: float = math.nan
    steps: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.dataset.n_features + (self.parameters.features == "concate")
        key = self.stream(plain.WEIGHTS)
        self.learning = [plain.uniform(plain.child(key, j)) for j in range(n)]
        self.model = fixed_model(np.zeros(1))

    @property
    def parameters(self) -> DBGD | PDGD:
        return cast("DBGD | PDGD", self.ranker)

    def update(self) -> None:
        """Let the learning model serve, and start the rate anew."""
        self.logging = list(self.learning)
        self.rate = self.parameters.rate

    def step(self, gradient: Vector) -> None:
        """Step along a gradient; the next step is a little shorter."""
        self.learning = [w + self.rate * g for w, g in zip(self.learning, gradient, strict=True)]
        self.rate *= self.parameters.decay
        self.steps += 1

    def x(self, item: Item, cold: bool = False) -> Vector:
        """Return an item's features, x^b last if it is one of them."""
        vector = [float(value) for value in self.dataset.features[item.row]]
        if self.parameters.features == "concate":
            seen = item.n > 0 and not cold
            vector.append(self.click_rate(item) if seen else 0.0)
        return vector

    def click_rate(self, item: Item) -> float:
        """Return x^b of an item that was shown."""
        return item.C / item.n if self.parameters.behavior == "ips" else item.c / item.E

    def offline_score(self, item: Item, cold: bool) -> float:
        return dot(self.logging, self.x(item, cold))

    def believed_clicks(self, session: Session) -> list[bool]:
        """Return the clicks, without those at ranks that users are assumed not to see."""
        return [c and p > 0 for c, p in zip(session.clicked, self.assumed, strict=False)]


class DuelReference(OnlineReference):
    """DBGD and MGD."""

    def serve(self, t: int) -> Session:
        q = self.asked(t)
        self.enter(q)
        query = self.queries[q]
        key = plain.child(plain.child(self.stream(plain.RANKER), q), query.sessions)
        directions = [self.direction(key, candidate) for candidate in range(self.candidates)]
        shown, teams = self.draft(query, directions, plain.child(key, 1))
        place = {item.row: rank for rank, item in enumerate(shown)}
        session = self.session(q, lambda item, _: -place.get(item.row, math.inf))
        self.log.append(session)
        if query.split == "train":
            self.learn(session, teams, directions)
        return session

    @property
    def candidates(self) -> int:
        return self.ranker.candidates if isinstance(self.ranker, MGD) else 1

    def direction(self, session: int, candidate: int) -> Vector:
        """Return a point of the unit sphere."""
        key = plain.child(plain.child(session, 0), candidate)
        return unit_vector(key, len(self.logging))

    def draft(
        self, query: Query, directions: list[Vector], key: int
    ) -> tuple[list[Item], list[int | None]]:
        """Return the multileaved list and who added each item."""
        step = cast(DBGD, self.ranker).step
        weights = [self.logging] + [
            [w + step * u for w, u in zip(self.logging, direction, strict=True)]
            for direction in directions
        ]
        lists = [
            ranking(query.candidates, lambda item, w=w: dot(w, self.x(item)))  # type: ignore[misc]
            for w in weights
        ]
        length = min(self.config.list_length, len(query.candidates))
        by_row = {item.row: item for item in query.candidates}
        rows, teams = team_draft([[item.row for item in items] for items in lists], length, key)
        return [by_row[row] for row in rows], teams

    def learn(self, session: Session, teams: list[int | None], directions: list[Vector]) -> None:
        """Step along the mean direction of the candidates that beat the logging model."""
        clicked = self.believed_clicks(session)
        clicks = [
            sum(c and team == ranker for c, team in zip(clicked, teams, strict=True))
            for ranker in range(len(directions) + 1)
        ]
        winners = [u for u, own in zip(directions, clicks[1:], strict=True) if own > clicks[0]]
        if winners:
            self.step([sum(column) / len(winners) for column in zip(*winners, strict=True)])


class PairwiseReference(OnlineReference):
    """PDGD."""

    def serve(self, t: int) -> Session:
        q = self.asked(t)
        self.enter(q)
        query = self.queries[q]
        x = {item.row: self.x(item) for item in query.candidates}
        f = {row: dot(self.logging, vector) for row, vector in x.items()}
        session = self.session(q, lambda item, key: f[item.row] + plain.gumbel(key))
        self.log.append(session)
        if query.split == "train":
            self.learn(session, x, f)
        return session

    def learn(self, session: Session, x: dict[int, Vector], f: dict[int, float]) -> None:
        """Step along the weighted preferences of clicked items over those passed over."""
        clicked = self.believed_clicks(session)
        pairs = preferred(clicked, [p > 0 for p in self.assumed])
        gradient = [0.0] * len(self.learning)
        for better, worse in pairs:
            weight = pair_weight(session.rows, f, better, worse)
            ahead, behind = x[session.rows[better]], x[session.rows[worse]]
            for j, (a, b) in enumerate(zip(ahead, behind, strict=True)):
                gradient[j] += weight * (a - b)
        if pairs:
            self.step(gradient)


@dataclass
class TopRankReference(Reference):
    """Algorithm 1: S and N of ordered pairs, and G, which holds (j, i) where i is better than j.

    A pair that G knows is not compared again, which the paper's blocks see to by themselves.
    """

    S: dict[Pair, int] = field(default_factory=dict)
    N: dict[Pair, int] = field(default_factory=dict)
    G: set[Pair] = field(default_factory=set)

    def update(self) -> None:
        self.model = fixed_model(np.zeros(1))

    def partition(self, query: Query) -> list[set[int]]:
        """P_d = min_G of the items that are in no block before."""
        left = {item.row for item in query.candidates}
        blocks = []
        while left:
            block = {i for i in left if not any((i, j) in self.G for j in left)} or set(left)
            blocks.append(block)
            left -= block
        return blocks

    def serve(self, t: int) -> Session:
        q = self.asked(t)
        self.enter(q)
        blocks = self.partition(self.queries[q])
        place = {row: d for d, block in enumerate(blocks) for row in block}
        session = self.session(q, lambda item, key: plain.uniform(key) - place[item.row])
        self.log.append(session)
        seen = zip(session.rows, session.clicked, self.assumed, strict=False)
        clicks = {row: int(click and p > 0) for row, click, p in seen}
        compared = [(i, j) for block in blocks for i in block for j in block - {i}]
        for i, j in [pair for pair in compared if not {pair, pair[::-1]} & self.G]:
            self.S[i, j] = self.S.get((i, j), 0) + clicks.get(i, 0) - clicks.get(j, 0)
            self.N[i, j] = self.N.get((i, j), 0) + abs(clicks.get(i, 0) - clicks.get(j, 0))
        self.G |= {(j, i) for i, j in compared if self.is_enough(self.S[i, j], self.N[i, j])}
        return session

    def is_enough(self, S: int, N: int) -> bool:
        delta = self.ranker.value("delta")
        c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
        return N > 0 and math.sqrt(2 * N * math.log(c / delta * math.sqrt(N))) <= S

    def offline_score(self, item: Item, cold: bool) -> float:
        blocks = self.partition(next(q for q in self.queries if item in q.items))
        return 0.0 if cold else -float(next(d for d, b in enumerate(blocks) if item.row in b))


def dot(w: Vector, x: Vector) -> float:
    return math.fsum(a * b for a, b in zip(w, x, strict=True))


def unit_vector(key: int, n: int) -> Vector:
    """Return n normal numbers by the polar method, divided by their norm."""
    normals: Vector = []
    counter = 0
    while len(normals) < n:
        bits = plain.child(key, counter)
        counter += 1
        x, y = (bits // 2**32) / 2**31 - 1, (bits % 2**32) / 2**31 - 1
        square = x * x + y * y
        if 0 < square < 1:
            stretch = math.sqrt(-2 * math.log(square) / square)
            normals += [stretch * x, stretch * y]
    norm = math.sqrt(math.fsum(z * z for z in normals[:n]))
    return [z / norm for z in normals[:n]]


def team_draft(
    lists: Sequence[Sequence[int]], length: int, key: int
) -> tuple[list[int], list[int | None]]:
    """Return a multileaved list and the team of each item; None where all rankers agreed.

    The team whose turn it is comes out of a hat; the hat is filled again when it is empty. The hat
    is an array in which a drawn team changes places with the first of those not yet drawn.
    """
    merged: list[int] = []
    teams: list[int | None] = []
    while len(merged) < length:
        tops = {items[len(merged)] for items in lists}
        if len(tops) > 1:
            break
        merged += tops
        teams.append(None)
    hat: list[int] = []
    while len(merged) < length:
        hat = hat or list(range(len(lists)))
        i = plain.below(plain.child(key, len(merged)), len(hat))
        hat[0], hat[i] = hat[i], hat[0]
        team = hat.pop(0)
        merged.append(next(item for item in lists[team] if item not in merged))
        teams.append(team)
    return merged, teams


def preferred(clicked: list[bool], examined: list[bool]) -> list[tuple[int, int]]:
    """Return pairs of ranks (clicked, passed over), down to one rank below the last click."""
    if not any(clicked):
        return []
    last = max(rank for rank, click in enumerate(clicked) if click)
    considered = range(min(last + 2, len(clicked)))
    return [
        (better, worse)
        for better in considered
        for worse in considered
        if clicked[better] and not clicked[worse] and examined[worse]
    ]


def pair_weight(rows: list[int], f: dict[int, float], better: int, worse: int) -> float:
    """Return ρ·e^{f_d} e^{f_e}/(e^{f_d} + e^{f_e})²."""
    swapped = list(rows)
    swapped[better], swapped[worse] = rows[worse], rows[better]
    shown, other = list_probability(rows, f), list_probability(swapped, f)
    d, e = math.exp(f[rows[better]]), math.exp(f[rows[worse]])
    return other / (shown + other) * d * e / (d + e) ** 2


def list_probability(rows: Sequence[int], f: dict[int, float]) -> float:
    """Return the probability of drawing these items in this order from the softmax of f."""
    left = {row: math.exp(score) for row, score in f.items()}
    probability = 1.0
    for row in rows:
        probability *= left[row] / math.fsum(left.values())
        del left[row]
    return probability
