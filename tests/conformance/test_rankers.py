"""What every ranker must do, whatever it ranks by. Runs on all rankers in the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ebrank.errors import DataError
from ebrank.evidence import Sums
from ebrank.rankers import registry
from ebrank.rankers.base import Ranker, Trial, TrialLearner, param
from ebrank.rankers.bm25 import fixed_model
from ebrank.rankers.model import ScoreModel
from ebrank.testing import check_ranker
from ebrank.testing import rankers as checks
from tests.simulation.tiny import tiny, variants

SETTINGS = [text for text in variants() if ":" not in text or ":features=" in text]
OTHERS = [text for text in variants() if text not in SETTINGS]


@pytest.mark.parametrize("text", SETTINGS)
def test_rankers_keep_the_rules(text: str) -> None:
    check_ranker(registry.parse(text))


@pytest.mark.parametrize("text", OTHERS)
def test_variants_keep_the_rules(text: str) -> None:
    ranker = registry.parse(text)
    checks.check_declaration(ranker)
    checks.check_repeats(ranker, tiny())
    if "learn_from=all" not in text:
        checks.check_test_labels_teach_nothing(ranker, tiny())


@pytest.mark.parametrize("name", registry.known())
def test_a_ranker_can_be_had_in_each_of_its_settings(name: str) -> None:
    settings = registry.known()[name].settings
    if len(settings) > 1:
        declared = {parameter.name: parameter for parameter in registry.parse(name).parameters()}
        assert declared["features"].choices == settings
        for setting in settings:
            assert registry.parse(f"{name}:features={setting}").setting == setting


def test_a_query_without_items_is_no_data() -> None:
    with pytest.raises(DataError):
        tiny(query_pointers=np.array([0, 0, *tiny().query_pointers[2:]]))


# --- the checks notice ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Odd(Ranker):
    """Ranks by whatever a test wants."""

    name = "odd"
    help = "A ranker that breaks a rule."
    settings = ("none",)

    scores: Callable[[Trial], Any] = field(default=lambda trial: None)

    def __post_init__(self) -> None: ...

    def learner(self, trial: Trial) -> TrialLearner:
        return OddLearner(self, trial)


@dataclass
class OddLearner:
    ranker: Odd
    trial: Trial

    def update(self) -> ScoreModel:
        return fixed_model(np.asarray(self.ranker.scores(self.trial), np.float64))


def rates(sums: Sums) -> np.ndarray:
    return (sums.clicks + 1.0) / (sums.exposure + 6.0)


DICE = np.random.default_rng(1)


def by_dice(trial: Trial) -> np.ndarray:
    return DICE.random(trial.dataset.n_rows)


def by_seed_of_its_own(trial: Trial) -> np.ndarray:
    return np.random.default_rng(1).random(trial.dataset.n_rows)


def by_cores(trial: Trial) -> np.ndarray:
    turned = -1.0 if (trial.threads or 0) > 1 else 1.0
    return turned * trial.dataset.baseline


def by_overwriting(trial: Trial) -> np.ndarray:
    trial.dataset.baseline[0] += 1.0
    return trial.dataset.baseline


def by_locking(trial: Trial) -> np.ndarray:
    trial.dataset.features.flags.writeable = False
    return trial.dataset.baseline


def by_mean_of_all_clicks(trial: Trial) -> np.ndarray:
    return trial.dataset.baseline + rates(trial.sums()).mean()


def by_division(trial: Trial) -> np.ndarray:
    with np.errstate(all="ignore"):
        return trial.dataset.features[:, 0] / trial.dataset.features[:, 0]


@pytest.mark.parametrize(
    ("check", "scores", "problem"),
    [
        (checks.check_repeats, by_dice, "a run with the same seed is another: .*test_ndcg"),
        (checks.check_threads, by_cores, "a run on 2 threads is another than on one"),
        (checks.check_trials, by_dice, "the third trial depends on those before it"),
        (checks.check_reads_only, by_overwriting, "it changes the dataset's baseline"),
        (checks.check_reads_only, by_locking, "it locks the dataset's features"),
        (
            checks.check_test_labels_teach_nothing,
            by_mean_of_all_clicks,
            "a at update 0 depends on the labels of test queries",
        ),
    ],
)
def test_a_ranker_that_breaks_a_rule_is_found_out(
    check: Callable[..., None], scores: Callable[[Trial], Any], problem: str
) -> None:
    with pytest.raises(AssertionError, match=problem):
        check(Odd(scores), tiny(sizes=[3 + i % 8 for i in range(150)]))


def test_what_is_learned_from_clicks_is_no_leak() -> None:
    train = tiny().rows_in("train")
    checks.check_test_labels_teach_nothing(
        Odd(lambda trial: trial.dataset.baseline + rates(trial.sums().rows(train)).mean()), tiny()
    )
    checks.check_repeats(Odd(by_seed_of_its_own), tiny())


def test_odd_data_are_named() -> None:
    with pytest.raises(Exception, match="is nan, not a finite number") as caught:
        checks.check_odd_data(Odd(by_division))
    assert caught.value.__notes__ == ["on a dataset with zero features"]


@dataclass(frozen=True)
class Muddled(Ranker):
    """Its text does not say all that it is."""

    name = "muddled"
    help = "A ranker whose text lies."
    settings = ("none",)

    speed: float = param(1.0, "how fast", at_least=0)

    def __str__(self) -> str:
        return "bm25"

    def learner(self, trial: Trial) -> TrialLearner:
        return OddLearner(Odd(by_seed_of_its_own), trial)


def test_declarations_that_mislead_are_found_out() -> None:
    with pytest.raises(AssertionError, match="its text 'bm25' reads back as another ranker, bm25"):
        checks.check_declaration(Muddled(speed=2.0))
