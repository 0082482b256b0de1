"""What a context changes: users on a phone may prefer other items than those at a desk.

A context is a few names with values, such as `{"device": "mobile"}`. A hash turns each pair into a
number, so that nothing keeps the text. An item with features x and relevance R̂, over all users,
then has this relevance in a context:

    σ(logit R̂ + Σ_b (z_b - z̄_b) v_b · x)

where z_b is 1 for the numbers b of the context and 0 for others, and z̄_b is b's share of all
exposure: what is the same in all contexts belongs to R̂.

>>> numbers({"device": "mobile", "segment": "new"})
(1921, 2696)
>>> moved(np.array([0.2, 0.2, 1.0]), np.array([0.0, 1.0, 1.0])).round(3)
array([0.   , 0.205, 0.   ])

The weights v are learned from single impressions (`learn`). A Gaussian prior shrinks them; held-out
queries choose its width, or that contexts change nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ebrank.errors import ParameterError
from ebrank.kernels.threads import one_blas_thread
from ebrank.model.prior.rows import FOLDS, folds_of, surely_lower
from ebrank.parameters import require
from ebrank.typing import Bools, Features, Floats, Ints

NUMBERS = 4096
"""Too few to identify a person, enough that a dozen contexts rarely share one."""
MOST = 64
"""The most contexts that are learned."""
LARGEST = 3.0
"""How far a context may move the logit of a relevance."""
WIDTHS = (0.03, 0.1, 0.3, 1.0)
"""Standard deviations of a weight to try, for features with a standard deviation of 1."""
FEWEST = 100
"""The fewest impressions for which a context is learned."""
ITERATIONS, TOLERANCE = 100, 1e-3


def numbers(context: Mapping[str, str]) -> tuple[int, ...]:
    """Return the numbers of a context's pairs, ascending."""
    hashed = set()
    for name, value in context.items():
        text = f"{len(name)}:{name}={value}".encode("utf-8", "surrogatepass")
        hashed.add(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % NUMBERS)
    return tuple(sorted(hashed))


def moved(relevance: Floats, shifts: Floats) -> Floats:
    """Return how much relevances change when their logits move by shifts.

    Relevances of 1 and more, which `ips` may estimate, stay.
    """
    inside, grown = np.clip(relevance, 0.0, 1.0), np.expm1(shifts)
    change: Floats = inside * (1.0 - inside) * grown / (1.0 + inside * grown)
    return change


@dataclass(frozen=True, eq=False)
class Contexts:
    """The effect of some contexts.

    Attributes:
        numbers: of the contexts, ascending.
        weights: what each adds to logits: a weight for each feature, then a constant.
        shares: each context's share of all exposure.
    """

    numbers: Ints
    weights: Floats
    shares: Floats

    def __post_init__(self) -> None:
        """Raise if arrays do not fit together."""
        rising = self.numbers.ndim == 1 and np.all(np.diff(self.numbers) > 0)
        inside = rising and np.all((self.numbers >= 0) & (self.numbers < NUMBERS))
        if not inside or not 0 < len(self.numbers) <= MOST:
            raise ParameterError(f"contexts have different numbers from 0 to {NUMBERS - 1}, rising")
        if self.weights.ndim != 2 or not len(self.weights) == len(self.numbers) == self.shares.size:
            raise ParameterError("each context has a row of weights, and a share")
        if self.shares.ndim != 1 or not np.all((self.shares >= 0.0) & (self.shares <= 1.0)):
            raise ParameterError("the shares of contexts are from 0 to 1")

    def shifts(self, features: Features, context: Sequence[int]) -> Floats | None:
        """Return how far a context, given by its numbers, moves the logits of items.

        None if the context is unknown. Features are scaled as they were when this was learned.
        """
        places = [place for place, number in enumerate(self.numbers.tolist()) if number in context]
        if not places:
            return None
        require(
            features.shape[1] == self.weights.shape[1] - 1,
            f"these contexts are of {self.weights.shape[1] - 1} features, not {features.shape[1]}",
        )
        # Not a matrix product: BLAS may wake threads for it, and wait for them for milliseconds.
        own = self.weights[places].sum(axis=0) - np.einsum("b,bf->f", self.shares, self.weights)
        logits = np.einsum("if,f->i", features.astype(np.float64), own[:-1]) + own[-1]
        shifts: Floats = np.clip(logits, -LARGEST, LARGEST)
        return shifts


@dataclass(frozen=True, eq=False)
class Impressions:
    """Single impressions, and what came of each.

    Attributes:
        rows: the item of each, by its row among the features.
        p: the probability that users look at its rank.
        outcomes: what it was worth, from 0 to 1.
        lists: the context of each, by its place in `contexts`.
        contexts: the numbers of contexts.
    """

    rows: Ints
    p: Floats
    outcomes: Floats
    lists: Ints
    contexts: Sequence[Sequence[int]]

    def __len__(self) -> int:
        return len(self.rows)

    def frequent(self, most: int) -> Ints:
        """Return the most frequent numbers, without those with too few impressions."""
        of_sets = np.bincount(self.lists, minlength=len(self.contexts))
        counts = np.zeros(NUMBERS, np.int64)
        for own, count in zip(self.contexts, of_sets.tolist(), strict=True):
            counts[list(own)] += count
        frequent = np.argsort(-counts, kind="stable")[:most]
        return np.sort(frequent[counts[frequent] >= FEWEST])

    def hot(self, chosen: Ints) -> Floats:
        """Return 1 for each number that an impression's context has, 0 for others."""
        sets = np.array([np.isin(chosen, list(own)) for own in self.contexts], np.float64)
        return sets[self.lists]


def learn(
    features: Features,
    relevance: Floats,
    impressions: Impressions,
    groups: Ints,
    *,
    most: int = 16,
    lenient: bool = False,
) -> Contexts | None:
    """Return the effect of contexts; None if held-out groups show none.

    Features and relevance have a row for each item, and `groups` says which rows are held out
    together: those of a query, unless there are few queries. Contexts must clearly lower their
    losses, or at all if `lenient`.
    """
    looked_at = np.flatnonzero(impressions.p > 0.0)
    chosen = impressions.frequent(most)
    if not len(chosen) or not len(looked_at):
        return None
    with one_blas_thread:
        hot = impressions.hot(chosen)
        shares = np.average(hot[looked_at], axis=0, weights=impressions.p[looked_at])
        table = _Table.of(features, relevance, impressions, looked_at, hot - shares)
        groups = np.unique(groups[table.items], return_inverse=True)[1]
        folds = folds_of(groups, np.ones(len(groups), np.bool_))
        nothing = table.without_features().held_out(folds, 1.0)
        tried = {width: table.held_out(folds, width) for width in WIDTHS}
        best = min(tried, key=lambda width: float(tried[width].sum()))
        lower = bool(tried[best].sum() < nothing.sum())
        if not lower or not (lenient or surely_lower(tried[best], nothing, groups)):
            return None
        return Contexts(chosen, table.raw(table.fitted(best)), shares)


@dataclass(frozen=True, eq=False)
class _Table:
    """Impressions in the order of their items, with everything to compute their losses.

    Attributes:
        items: rows of the items.
        begins: where the impressions of each item begin; `owner` is the item of each.
        x: standardized features of the items, and a 1.
        center, scale: of the features.
        unlike: z - z̄ of each impression.
        base: logit of each impression's item.
    """

    items: Ints
    begins: Ints
    owner: Ints
    x: Floats
    center: Floats
    scale: Floats
    unlike: Floats
    base: Floats
    p: Floats
    outcomes: Floats

    @classmethod
    def of(
        cls,
        features: Features,
        relevance: Floats,
        impressions: Impressions,
        looked_at: Ints,
        unlike: Floats,
    ) -> _Table:
        order = looked_at[np.argsort(impressions.rows[looked_at], kind="stable")]
        items, begins, owner = np.unique(
            impressions.rows[order], return_index=True, return_inverse=True
        )
        p = impressions.p[order]
        weight = np.add.reduceat(p, begins)
        raw = features[items].astype(np.float64)
        center = weight @ raw / weight.sum()
        spread = np.sqrt(weight @ (raw - center) ** 2 / weight.sum())
        scale = np.where(spread > 1e-9 * (1.0 + np.abs(center)), spread, np.inf)
        chance = np.clip(relevance[items], 1e-4, 1.0 - 1e-4)
        return cls(
            items=items,
            begins=begins,
            owner=owner,
            x=np.column_stack([(raw - center) / scale, np.ones(len(items))]),
            center=center,
            scale=scale,
            unlike=unlike[order],
            base=np.log(chance / (1.0 - chance))[owner],
            p=p,
            outcomes=impressions.outcomes[order],
        )

    def without_features(self) -> _Table:
        """Return a table in which contexts change only how much users click."""
        return replace(self, x=self.x[:, -1:])

    @property
    def size(self) -> int:
        """How many numbers are fitted: a row of weights for each context, and a level."""
        return int(self.unlike.shape[1] * self.x.shape[1] + 1)

    def logits(self, theta: Floats) -> Floats:
        """Return the logit of each impression's relevance."""
        weights = theta[:-1].reshape(self.unlike.shape[1], -1)
        effects = (self.x @ weights.T)[self.owner]
        logits: Floats = self.base + np.einsum("nb,nb->n", effects, self.unlike) + theta[-1]
        return logits

    def losses(self, theta: Floats) -> Floats:
        """Return the loss of each item: the negative log-likelihood of its outcomes."""
        losses, _ = losses_and_slopes(self.logits(theta), self.p, self.outcomes)
        return np.add.reduceat(losses, self.begins)

    def objective(
        self, width: float, included: Bools | None = None
    ) -> Callable[[Floats], tuple[float, Floats]]:
        """Return the function that gives the penalized loss of some items, and its gradient."""
        penalty = self._penalty(width)
        counts = 1.0 if included is None else included[self.owner].astype(np.float64)

        def value_and_gradient(theta: Floats) -> tuple[float, Floats]:
            losses, slopes = losses_and_slopes(self.logits(theta), self.p, self.outcomes)
            losses, slopes = losses * counts, slopes * counts
            by_item = np.add.reduceat(slopes[:, None] * self.unlike, self.begins)
            gradient = np.append((by_item.T @ self.x).ravel(), slopes.sum())
            value = float(losses.sum()) + 0.5 * float(penalty @ theta**2)
            return value, gradient + penalty * theta

        return value_and_gradient

    def _penalty(self, width: float) -> Floats:
        """Return the inverse variances of weights; shifts of all items are hardly penalized."""
        of_context = np.append(np.full(self.x.shape[1] - 1, width**-2.0), 1.0)
        return np.append(np.tile(of_context, self.unlike.shape[1]), 1.0)

    def fitted(self, width: float, included: Bools | None = None) -> Floats:
        """Return the weights that minimize the penalized loss."""
        from scipy import optimize  # takes a while to import, and a server never needs it

        objective = self.objective(width, included)
        root = np.sqrt(self._curvature() + self._penalty(width))

        def scaled(u: Floats) -> tuple[float, Floats]:
            value, gradient = objective(u / root)
            return value, gradient / root

        result = optimize.minimize(
            scaled,
            np.zeros(self.size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": ITERATIONS, "gtol": TOLERANCE, "ftol": 1e-12, "maxcor": 20},
        )
        weights: Floats = result.x / root
        return weights

    def _curvature(self) -> Floats:
        """Return the approximate curvature of the loss by each weight."""
        s, away = _sigmoid(self.base), _sigmoid(-self.base)
        bends = self.p * s * away**2 / (1.0 - self.p + self.p * away)
        by_item = np.add.reduceat(bends[:, None] * self.unlike**2, self.begins)
        return np.append((by_item.T @ self.x**2).ravel(), bends.sum())

    def held_out(self, folds: Ints, width: float) -> Floats:
        """Return the loss of each item under weights fitted without its fold."""
        losses = np.zeros(len(self.items))
        for fold in range(FOLDS):
            own = folds == fold
            if own.any():
                losses[own] = self.losses(self.fitted(width, ~own))[own]
        return losses

    def raw(self, theta: Floats) -> Floats:
        """Return weights of unstandardized features that change nothing for an average item."""
        weights = theta[:-1].reshape(self.unlike.shape[1], -1)[:, :-1] / self.scale
        return np.column_stack([weights, -weights @ self.center])


def losses_and_slopes(logits: Floats, p: Floats, outcomes: Floats) -> tuple[Floats, Floats]:
    """Return the negative log-likelihood of outcomes, and its slope by the logit of relevance.

    An impression at a rank that users look at with probability p has an outcome of 1 with
    probability p·σ(logit), otherwise 0; values in between count as a mixture.
    """
    s, away = _sigmoid(logits), _sigmoid(-logits)
    passed = 1.0 - p + p * away
    losses = outcomes * np.logaddexp(0.0, -logits) - (1.0 - outcomes) * np.log(passed)
    slopes = -outcomes * away + (1.0 - outcomes) * p * s * away / passed
    return losses, slopes


def _sigmoid(logits: Floats) -> Floats:
    from scipy.special import expit

    values: Floats = expit(logits)
    return values
