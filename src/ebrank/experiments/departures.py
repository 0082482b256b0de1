"""In what our experiment is known to differ from the one behind a reference figure.

Facts, from PROTOCOL and from the data at hand; whether one of them is the cause of a difference is
for the reader and for the variants to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from ebrank.experiments import paper
from ebrank.experiments.paper import RELEASED_CODE, RELEASED_SESSIONS, Reference
from ebrank.experiments.run import Setup
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker

ALL_PARTITIONS = "the released code learns from sessions of all partitions, ours from training ones"
LOST_CANDIDATES = "the released code loses the candidate count and uses one, ours has 9"
LEAK = "the released code's gradient sees x^b that the clicks it learns from have updated"
ONCE_CLICKED = "the released code believes x^b once an item is clicked, ours once it is shown"
OFTEN_SHOWN = "the released code trains the prior on items shown more than 20 times, ours on all"
OTHER_ESTIMATOR = "the paper's figures look like those of the exposure estimator: see the variants"


def departures(setup: Setup, theirs: Reference, ranker: Ranker, told: str) -> list[str]:
    """Return in what a run of a ranker is known to differ from the reference's ranker, `told`."""
    released = theirs.source == RELEASED_CODE
    return [
        *_of_the_data(setup, theirs, released),
        *_of_epsilon(ranker, told, released),
        *_of_the_ranker(ranker, released),
    ]


def _of_the_data(setup: Setup, theirs: Reference, released: bool) -> Iterator[str]:
    name, _, scale = setup.dataset.name.partition("×")
    if paper.stands_in_for(name) is not None:
        share = f" with {scale} of its queries" if scale else ""
        yield f"synthetic data{share} in place of {theirs.dataset}"
    ours = setup.config.session_count(setup.dataset)
    if released and ours != RELEASED_SESSIONS:
        yield f"{RELEASED_SESSIONS:,} sessions there, {ours:,} here"


def _of_epsilon(ranker: Ranker, told: str, released: bool) -> Iterator[str]:
    ours = getattr(ranker, "epsilon", None)
    if ours is None:
        return
    if not released:
        yield f"ε = {registry.typed(ours)} here, not stated there"
    elif ours != (known := getattr(registry.parse(told), "epsilon", None)):
        yield f"ε = {registry.typed(known)} there, {registry.typed(ours)} here"


def _of_the_ranker(ranker: Ranker, released: bool) -> Iterator[str]:
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
        case "ucbrank" if getattr(ranker, "shown", "") == "shown":
            yield ONCE_CLICKED
        case "ebrank" if getattr(ranker, "part", "") == "both":
            if getattr(ranker, "estimator", "") == "ips" and not released:
                yield OTHER_ESTIMATOR
            if getattr(ranker, "min_impressions", 0) == 0:
                yield OFTEN_SHOWN
