"""What every ranker must do, whatever it ranks by. Runs on all rankers in the registry."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ebrank.evidence import Examination, Sums
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.rankers import registry
from ebrank.lab.rankers.base import Ranker, Refit, Trial, TrialLearner, fixed_model, param
from ebrank.lab.simulation.config import SimulationConfig
from ebrank.lab.simulation.engine import run_trial
from ebrank.lab.simulation.result import TrialResult
from ebrank.lab.simulation.users import PositionBased
from ebrank.testing import check_ranker
from ebrank.testing import rankers as checks
from ebrank.testing.rankers import check_ranges, differences
from ebrank.typing import Floats
from tests.lab.simulation.tiny import tiny, variants, watched

CONFIG = SimulationConfig(updates=3, sessions=150, warmup_sessions=3)
SETTINGS = [text for text in variants() if ":" not in text or ":features=" in text]

every_setting = pytest.mark.parametrize("text", SETTINGS)
every_variant = pytest.mark.parametrize(
    "text",
    [
        text if text in SETTINGS else pytest.param(text, marks=pytest.mark.slow)
        for text in variants()
    ],
)


def run(text: str, data: Dataset, seed: int = 1, threads: int | None = 1) -> TrialResult:
    return run_trial(data, registry.parse(text), CONFIG, seed, trial=0, threads=threads)


@pytest.mark.slow
@every_variant
def test_rankers_conform(text: str) -> None:
    with knowing_labels_if_an_oracle(text):
        check_ranker(registry.parse(text), learns_from_test="learn_from=all" in text)


def knowing_labels_if_an_oracle(text: str) -> AbstractContextManager[object]:
    """The one exception: the ceiling is what a ranker could do that knows the labels."""
    told = "^oracle knows the labels of test queries"
    return pytest.raises(AssertionError, match=told) if text == "oracle" else nullcontext()


# --- a run is a pure function of dataset, ranker, config and seed --------------------------------


@every_setting
def test_all_rankers_meet_the_same_users(text: str) -> None:
    """Where all items are shown and all are looked at, order is nothing and clicks are the same."""
    data = tiny(seed=2)
    config = replace(
        CONFIG,
        list_length=20,
        initial_candidates=(20, 20),
        users=PositionBased(Examination(severity=0.0)),
    )
    stats = []
    for name in ("bm25", text):
        ranker, watch = watched(name)
        run_trial(data, ranker, config, seed=7, trial=1)
        assert watch.trial is not None
        stats.append(watch.trial.stats)
    assert stats[0].clicks.tolist() == stats[1].clicks.tolist()
    assert stats[0].shown.tolist() == stats[1].shown.tolist()
    assert stats[0].clicks.sum() > 100


# --- the caller's data ---------------------------------------------------------------------------


@every_setting
def test_the_dataset_may_be_mapped_from_disk(text: str, tmp_path: Path) -> None:
    data, mapped = tiny(), {}
    for name in (f.name for f in fields(Dataset)):
        if isinstance(values := getattr(data, name), np.ndarray):
            np.save(tmp_path / f"{name}.npy", values)
            mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    assert differences(run(text, data), run(text, replace(data, **mapped))) == []


def odd_datasets() -> dict[str, Dataset]:
    data = tiny()
    rows, rng = data.n_rows, np.random.default_rng(1)
    odd = np.array([3e38, -3e38, 1e-45, -1e-40, 0.0, -0.0, 1.0, 1.17549435e-38], np.float32)
    nothing, same = np.zeros(rows), np.full((rows, 3), 0.5, np.float32)
    return {
        "one item per query": tiny(sizes=[1] * 60),
        "a query per split": tiny(sizes=(8, 9, 7)),
        "splits end to end": tiny(interleaved=False),
        "one feature": tiny(n_features=1),
        "more features than rows": tiny(sizes=(6, 7, 8), n_features=40),
        "equal features": tiny(features=same, baseline=nothing.astype(np.float32)),
        "zero features": tiny(features=np.zeros((rows, 3), np.float32)),
        "collinear features": tiny(features=np.repeat(data.features[:, :1], 3, axis=1)),
        "extreme features": tiny(features=rng.choice(odd, (rows, 3))),
        "large features": tiny(features=data.features * np.float32(1e30)),
        "extreme BM25": tiny(baseline=rng.choice(odd, rows)),
        "nothing relevant": tiny(labels=nothing.astype(np.int8)),
        "all relevant": tiny(labels=np.full(rows, 2, np.int8)),
        "many labels": tiny(max_label=4),
    }


ODD = odd_datasets()


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
@every_setting
def test_odd_data(text: str, name: str) -> None:
    result = run(text, ODD[name])
    check_ranges(result, CONFIG)
    if name == "one item per query":
        assert np.all(result.test_ndcg == 1.0)
    if name in ("nothing relevant", "all relevant"):
        full = ODD[name].candidates[result.test_queries] <= 5
        np.testing.assert_allclose(result.test_ndcg[full], 1.0)


# --- the checks notice ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Odd(Ranker):
    """Ranks by whatever a test wants."""

    name = "odd"
    help = "A ranker that breaks a rule."
    settings = ("none",)

    scores: Callable[[Trial], Any] = field(default=lambda trial: None)

    def __post_init__(self) -> None: ...

    def __str__(self) -> str:
        return "odd"

    def learner(self, trial: Trial) -> TrialLearner:
        return Refit(lambda: fixed_model(np.asarray(self.scores(trial), np.float64)))


def rates(sums: Sums) -> Floats:
    return (sums.clicks + 1.0) / (sums.exposure + 6.0)


DICE = np.random.default_rng(1)


def by_dice(trial: Trial) -> Any:  # noqa: ANN401
    return DICE.random(trial.dataset.n_rows)


def by_seed_of_its_own(trial: Trial) -> Any:  # noqa: ANN401
    return np.random.default_rng(1).random(trial.dataset.n_rows)


def by_cores(trial: Trial) -> Any:  # noqa: ANN401
    turned = -1.0 if (trial.threads or 0) > 1 else 1.0
    return turned * trial.dataset.baseline


def by_overwriting(trial: Trial) -> Any:  # noqa: ANN401
    trial.dataset.baseline[0] += 1.0
    return trial.dataset.baseline


def by_label(trial: Trial) -> Any:  # noqa: ANN401
    return trial.dataset.labels


def by_relevance_later(trial: Trial) -> Any:  # noqa: ANN401
    return trial.relevance if trial.stats.shown.sum() > 2200 else trial.dataset.baseline


def by_forgetting(trial: Trial) -> Any:  # noqa: ANN401
    trial.stats.counts[:] = 0
    return trial.dataset.baseline


def by_mean_of_all_clicks(trial: Trial) -> Any:  # noqa: ANN401
    return trial.dataset.baseline + rates(trial.sums()).mean()


@pytest.mark.parametrize(
    ("check", "scores", "problem"),
    [
        (checks.check_repeats, by_dice, "run twice with one seed: other bits in .*test_ndcg"),
        (checks.check_threads, by_cores, "on 2 threads: other bits in"),
        (checks.check_trials_are_apart, by_dice, "the second trial alone: other bits in"),
        (checks.check_dataset_is_only_read, by_overwriting, "changed baseline"),
        (checks.check_statistics_are_only_read, by_forgetting, "changed stats of the trial"),
        (checks.check_labels_are_secret, by_label, "labels of test queries: a at update 0 differs"),
        (
            checks.check_labels_are_secret,
            by_relevance_later,
            "knows the labels of test queries: a at update 1 differs",
        ),
        (
            checks.check_test_clicks_do_not_teach,
            by_mean_of_all_clicks,
            "learns from clicks on test queries: a at update 0 differs",
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
    by_training = Odd(lambda trial: trial.dataset.baseline + rates(trial.sums().rows(train)).mean())
    by_itself = Odd(lambda trial: rates(trial.sums()))
    checks.check_labels_are_secret(Odd(by_mean_of_all_clicks), tiny())
    for ranker in (by_training, by_itself):
        checks.check_labels_are_secret(ranker, tiny())
        checks.check_test_clicks_do_not_teach(ranker, tiny())
    checks.check_repeats(Odd(by_seed_of_its_own), tiny())


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
        return Odd(by_seed_of_its_own).learner(trial)


def test_declarations_that_mislead_are_found_out() -> None:
    with pytest.raises(AssertionError, match=r"bm25 reads back as BM25\(\)"):
        checks.check_declaration(Muddled(speed=2.0), tiny())
