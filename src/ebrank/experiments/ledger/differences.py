"""How our experiment is known to differ from the one behind a reference figure.

These are facts, from PROTOCOL, from the dataset and from what the user changed. Readers and the
variants must tell whether one of them causes a difference. `general_differences` concern every
figure and are listed once; `ranker_differences` are listed beside a ranker's figures.

>>> list(_config(SimulationConfig(updates=4, entering_probability=0.5)))
['entering_probability = 0.5 here, 1.0 by default', 'updates = 4 here, 20 by default']
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from ebrank.experiments.framework.experiment import Setup
from ebrank.experiments.framework.folds import AnyRanker, in_words
from ebrank.experiments.ledger.references import (
    RELEASED_CODE,
    RELEASED_SESSIONS,
    Reference,
    stands_in_for,
)
from ebrank.parameters import typed
from ebrank.rankers import registry
from ebrank.simulation.config import SimulationConfig

AS_RELEASED = (
    "there BM25 serves 20·Q queries drawn at random first, here each query 20 times",
    "there queries begin with 5 to 9 items and the last item of a query never enters, here with 5 "
    "to 10 and all enter",
    "there the last query of each file is lost",
    "there models are random until the first update and evaluated before the last one, here fitted "
    "to the log before serving and evaluated after it",
)
"""Differences from the released code, for every ranker."""
ALL_PARTITIONS = "the released code learns from sessions of all partitions, ours from training ones"
LOST_CANDIDATES = "the released code loses the candidate count and uses one, ours has 9"
LEAK = "the released code's gradient sees x^b that the clicks it learns from have updated"
ONCE_CLICKED = "the released code believes x^b once an item is clicked, ours once it is shown"
OFTEN_SHOWN = "the released code trains the prior on items shown more than 20 times, ours on all"
PLAIN_ALPHA = "there α is a linear score, which may be negative, here its exponential"
OTHER_ESTIMATOR = "the paper's figures look like those of the exposure estimator: see the variants"
OTHER_FEATURE = "x^b is C/n there, c/E here: see the variants"
RELEASED_FEATURE = "x^b is c/E there, C/n here"
WITH_SESSIONS = "grows with their number until it levels off"
DEFAULTS = SimulationConfig()


def general_differences(setup: Setup, theirs: Reference) -> list[str]:
    """Return how our experiment differs from the reference's for every ranker."""
    released = theirs.source == RELEASED_CODE
    return [
        *_data(setup, theirs),
        *_sessions(setup, released),
        *_config(setup.config),
        *(AS_RELEASED if released else ()),
    ]


def ranker_differences(theirs: Reference, ranker: AnyRanker, published: str) -> list[str]:
    """Return how a ranker is known to differ from the reference's, whose text is `published`."""
    released = theirs.source == RELEASED_CODE
    return [
        *_feature(ranker, released),
        *_epsilon(ranker, published, released),
        *_ranker(ranker, released),
    ]


def _data(setup: Setup, theirs: Reference) -> Iterator[str]:
    origin = setup.dataset.origin
    if origin is None:
        return
    if stands_in_for(origin) is not None:
        share = f" with {origin.scale:g} of its queries" if origin.scale != 1 else ""
        yield f"synthetic data{share} in place of {theirs.dataset}"
    elif setup.folds:
        numbers = [fold.number for fold in setup.folds if fold.number is not None]
        yield f"{in_words(numbers)} here, pooled, fold 1 in the protocol"
    elif origin.fold != 1:
        fold = "an unknown fold" if origin.fold is None else f"fold {origin.fold}"
        yield f"{fold} here, fold 1 in the protocol"
    for name, value in origin.options:
        yield f"{name} = {value} here"


def _sessions(setup: Setup, released: bool) -> Iterator[str]:
    counts = sorted({part.sessions for part in setup.parts})
    ours = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
    if released:
        if counts != [RELEASED_SESSIONS]:
            yield f"{RELEASED_SESSIONS:,} sessions there, {ours} here"
    elif setup.config.sessions is not None:
        yield f"{ours} sessions here, by a formula there, and Cum-NDCG {WITH_SESSIONS}"
    elif setup.dataset.origin is not None and setup.dataset.origin.scale != 1:
        yield f"only {ours} sessions, as the set is scaled, and Cum-NDCG {WITH_SESSIONS}"


def _config(config: SimulationConfig) -> Iterator[str]:
    """Yield what the user changed, except the number of sessions."""
    for field in fields(config):
        ours, usual = getattr(config, field.name), getattr(DEFAULTS, field.name)
        if ours != usual and field.name != "sessions":
            yield f"{field.name} = {ours} here, {usual} by default"


def _feature(ranker: AnyRanker, released: bool) -> Iterator[str]:
    """Yield how x^b differs, for a ranker that uses it."""
    behavior = ranker.value("behavior") if ranker.setting != "none" else None
    if behavior == "exposure" and not released:
        yield OTHER_FEATURE
    if behavior == "ips" and released:
        yield RELEASED_FEATURE


def _epsilon(ranker: AnyRanker, published: str, released: bool) -> Iterator[str]:
    ours = ranker.value("epsilon")
    if ours is None:
        return
    if not released:
        yield f"ε = {typed(ours)} here, not stated there"
    elif ours != (known := registry.parse(published).value("epsilon")):
        yield f"ε = {typed(known)} there, {typed(ours)} here"


def _ranker(ranker: AnyRanker, released: bool) -> Iterator[str]:
    match ranker.name:
        case "dbgd":
            yield ALL_PARTITIONS
        case "mgd":
            yield LOST_CANDIDATES
            yield ALL_PARTITIONS
        case "pdgd":
            if ranker.setting == "concate":
                yield LEAK
            yield ALL_PARTITIONS
        case "ucbrank" if ranker.value("shown") == "shown":
            yield ONCE_CLICKED
        case "ebrank":
            yield from _ebrank(ranker, released)


def _ebrank(ranker: AnyRanker, released: bool) -> Iterator[str]:
    part = ranker.value("part")
    if part == "both" and ranker.value("estimator") == "ips" and not released:
        yield OTHER_ESTIMATOR
    if part != "behavior":
        if not ranker.value("min_impressions"):
            yield OFTEN_SHOWN
        if released:
            yield PLAIN_ALPHA
