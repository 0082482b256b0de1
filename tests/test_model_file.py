"""A model file from a stranger can be wrong in every way; it is refused and never run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, EBRanker, Examination, LinearPrior, ModelFileError, model_file
from ebrank.features import Scaling

Document = dict[str, Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    features = np.linspace(0, 1, 20, dtype=np.float32).reshape(10, 2)
    stats = BehaviorStats.zeros(10)
    for _ in range(5):
        stats.record([3, 1, 7], [1, 0, 1], Examination())
    path = tmp_path_factory.mktemp("models") / "model.json"
    EBRanker(examination=Examination(curve=(1.0, 0.5))).fit(features, stats).save(path)
    return path


def test_the_file_is_plain_json_and_reads_back(saved: Path) -> None:
    document = json.loads(saved.read_text())
    assert document["format"] == "ebrank-model"
    assert document["learned"]["kind"] == "linear"
    assert len(document["learned"]["weights"]) == 2
    loaded = EBRanker.load(saved)
    assert loaded.examination == Examination(curve=(1.0, 0.5))


def test_an_unfitted_ranker_can_be_saved_too(tmp_path: Path) -> None:
    EBRanker(epsilon=2.0).save(tmp_path / "new.json")
    assert EBRanker.load(tmp_path / "new.json").epsilon == 2.0


def change(key: str, value: object) -> Callable[[Document], None]:
    """Return an edit that puts a value under a dotted key."""

    def edit(document: Document) -> None:
        *parents, last = key.split(".")
        for parent in parents:
            document = document[parent]
        document[last] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (change("format", "other"), "not an ebrank model"),
        (change("version", 99), "version 99"),
        (change("ranker", None), "'ranker' is missing"),
        (change("ranker.epsilon", -1), "epsilon"),
        (change("ranker.epsilon", "much"), "epsilon must be a number"),
        (change("ranker.epsilon", True), "epsilon must be a number"),
        (change("ranker.unknown", 1), "unknown"),
        (change("ranker.prior", {"kind": "os.system"}), "parameters"),
        (change("ranker.examination", {"cutoff": 0}), "cutoff"),
        (change("ranker.examination", {"nonsense": 0}), "nonsense"),
        (change("ranker.examination", 5), "examination"),
        (change("learned", [1]), "'learned' is missing"),
        (change("learned.kind", "pickle"), "unknown kind of prior 'pickle'"),
        (change("learned.weights", ["a"]), "tampered"),
        (change("learned.weights", [[1.0]]), "tampered"),
        (change("learned.weights", 3), "tampered"),
        (change("learned.intercept", None), "tampered"),
        (change("learned.weights", [1e999]), "a weight must be"),
        (change("learned.weights", [1e308]), "a weight must be"),
        (change("learned.weights", "123"), "no list of weights"),
        (change("learned.weights", ["1", True]), "a weight must be"),
        (change("learned.parameters.estimator", "exposure"), "estimator"),
        (change("learned.kind", ["linear"]), "unknown kind"),
        (change("version", True), "version True"),
        (change("extra", 1), "extra"),
        (lambda document: document.pop("learned"), "learned"),
        (lambda document: document["ranker"].pop("seed"), "seed"),
        (change("learned.parameters", 7), "tampered"),
        (change("learned.parameters.threads", "x"), "threads"),
        (change("learned.parameters.clamp", 1), "clamp"),
        (change("learned.extra", 7), "extra"),
    ],
)
def test_a_tampered_file_is_refused_with_the_reason(
    saved: Path, tmp_path: Path, edit: Callable[[Document], None], reason: str
) -> None:
    document = json.loads(saved.read_text())
    edit(document)
    path = tmp_path / "tampered.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=reason) as caught:
        EBRanker.load(path)
    assert "tampered.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\x80\x04pickle", b"[]", b"null", b"[" * 100_000])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an ebrank model"):
        EBRanker.load(path)


@given(cut=st.integers(0, 10_000))
def test_a_truncated_file_is_refused(saved: Path, cut: int) -> None:
    content = saved.read_bytes()
    path = saved.with_name("cut.json")
    path.write_bytes(content[: cut % len(content)])
    with pytest.raises(ModelFileError):
        EBRanker.load(path)


def test_missing_and_unwritable_places_are_told(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        EBRanker.load(tmp_path / "absent.json")
    with pytest.raises(ModelFileError, match="cannot be written"):
        EBRanker().save(tmp_path / "no-such-folder" / "model.json")


def test_a_prior_of_an_unknown_kind_cannot_be_saved(tmp_path: Path) -> None:
    ranker = EBRanker()
    ranker.prior_ = object()  # type: ignore[assignment]
    with pytest.raises(ModelFileError, match="object cannot be saved"):
        ranker.save(tmp_path / "model.json")


def test_a_prior_that_was_given_is_given_again(tmp_path: Path) -> None:
    features = np.random.default_rng(0).random((40, 3), dtype=np.float32)
    stats = BehaviorStats.zeros(40)
    for first in range(0, 40, 5):
        stats.record(range(first, first + 5), [1, 0, 1, 0, 0], Examination())
    prior = LinearPrior(l2=0.5, min_impressions=0, tolerance=1e-6)
    for ranker in (EBRanker(prior), EBRanker(prior).fit(features, stats)):
        ranker.save(tmp_path / "model.json")
        loaded = EBRanker.load(tmp_path / "model.json")
        assert repr(loaded) == repr(ranker)
        again = ranker.fit(features, stats).rank(features, stats)
        np.testing.assert_array_equal(
            loaded.fit(features, stats).rank(features, stats).scores, again.scores
        )


def test_numbers_of_numpy_can_be_saved_and_others_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    EBRanker(epsilon=np.float32(3), seed=np.int64(4)).save(path)  # type: ignore[arg-type]
    assert (EBRanker.load(path).epsilon, EBRanker.load(path).seed) == (3.0, 4)
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize(
    "scaling", [None, Scaling("query"), Scaling("global", (0.1, -2.0), (0.3, 7.5))]
)
def test_the_scaling_is_a_part_of_the_file(tmp_path: Path, scaling: Scaling | None) -> None:
    EBRanker(scaling=scaling).save(tmp_path / "model.json")
    assert EBRanker.load(tmp_path / "model.json").scaling == scaling


def test_files_from_before_scaling_are_still_read(tmp_path: Path) -> None:
    document = json.loads(model_file.to_bytes(EBRanker(epsilon=3.0)))
    del document["ranker"]["scaling"]
    with pytest.raises(ModelFileError, match="scaling"):
        model_file.from_bytes(json.dumps(document).encode(), "new file")
    document["version"] = 1
    old = model_file.from_bytes(json.dumps(document).encode(), "old file")
    assert (old.epsilon, old.scaling) == (3.0, None)
