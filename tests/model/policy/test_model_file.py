"""A model file from a stranger can be wrong in every way; it is refused and never run."""

from __future__ import annotations

import contextlib
import copy
import json
import operator
import sys
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ebrank import BehaviorStats, EBRanker, Examination, ModelFileError
from ebrank.model.policy import model_file
from ebrank.model.policy.scaling import Scaling
from ebrank.typing import Features
from tests.shell import pasted

Document = dict[str, Any]

MINE = """
from dataclasses import dataclass
from ebrank.model.bonus import Bonus
from ebrank.parameters import param

open("imported", "w").close()

@dataclass(frozen=True)
class Flat(Bonus):
    name, help = "flat", "The same for all."
    height: float = param(1.0, "how much")

    @staticmethod
    def value(height):
        return height
"""


def world() -> tuple[Features, BehaviorStats]:
    features = np.linspace(0, 1, 24, dtype=np.float32).reshape(12, 2) ** 2
    stats = BehaviorStats.zeros(12)
    for session in range(12):
        ranking = [(session + 5 * i) % 12 for i in range(5)]
        stats.record(ranking, [(session + i) % 3 == 0 for i in range(5)])
    return features, stats


def linear() -> EBRanker:
    ranker = EBRanker(
        "ebrank:epsilon=3,estimator=exposure",
        examination=Examination(curve=(1.0, 0.5)),
        scaling=Scaling("global", (0.0, 0.0), (1.0, 2.0)),
    )
    return ranker.fit(*world())


def learned_world() -> tuple[Features, BehaviorStats]:
    """Return a log that tells how far down users look."""
    rng = np.random.default_rng(2)
    features = rng.random((1000, 2), dtype=np.float32)
    shown = rng.multinomial(20, [0.4, 0.3, 0.3], 1000)
    clicks = rng.binomial(shown, np.array([1.0, 0.8, 0.3]) * (0.1 + 0.5 * features[:, :1]))
    return features, BehaviorStats.of(shown, clicks)


@cache
def learned() -> EBRanker:
    return EBRanker("auto", examination=Examination(cutoff=4)).fit(*learned_world())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.json"
    linear().save(path)
    return path


# --- what is written -----------------------------------------------------------------------------


numbers = st.floats(-1e30, 1e30)


@given(st.lists(numbers, min_size=1, max_size=8), numbers, st.floats(0, 1e3))
def test_any_numbers_read_back_bit_for_bit(
    weights: list[float], intercept: float, ridge: float
) -> None:
    ranker = EBRanker()
    ranker.state_ = {
        "weights": np.array(weights),
        "intercept": np.array([intercept]),
        "ridge": np.array([ridge]),
    }
    loaded = model_file.from_bytes(model_file.to_bytes(ranker), "here")
    assert loaded.state_ is not None
    for name, array in ranker.state_.items():
        assert loaded.state_[name].tobytes() == array.tobytes()


def test_numbers_of_numpy_can_be_saved_and_others_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    curve = Examination(severity=np.float32(2), cutoff=np.int64(5))  # type: ignore[arg-type]
    EBRanker("ebrank", epsilon=np.float32(3), seed=np.int64(4), examination=curve).save(path)  # type: ignore[arg-type]
    loaded = EBRanker.load(path)
    assert (loaded.policy.values()["epsilon"], loaded.seed) == (3.0, 4)
    assert loaded.examination == Examination(severity=2.0, cutoff=5)
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


# --- what is refused -----------------------------------------------------------------------------


DROP = object()


def array(*values: object, shape: object = None) -> Document:
    return {"shape": [len(values)] if shape is None else shape, "values": list(values)}


def edited(document: Document, key: str, value: object) -> bytes:
    """Return a document with another value under a dotted key, or without the key."""
    document = copy.deepcopy(document)
    *parents, last = key.split(".")
    section = document
    for parent in parents:
        section = section[parent]
    if value is DROP:
        del section[last]
    else:
        section[last] = value
    return json.dumps(document).encode()


@cache
def document(kind: str) -> Document:
    """Return what a file of some kind of ranker holds."""
    ranker = learned() if kind == "auto" else linear()
    content: Document = json.loads(model_file.to_bytes(ranker))
    return content


TAMPERED: dict[str, list[tuple[str, object, str]]] = {
    "linear": [
        ("format", "other", "not an ebrank model"),
        ("version", 2, "version 2"),
        ("version", True, "version True"),
        ("extra", 1, "extra"),
        ("state", DROP, "state"),
        ("scaling", DROP, "scaling"),
        ("policy", None, "the policy must be a text"),
        ("policy", "ebrank:epsilon=-1", "ebrank: epsilon takes a number of 0 or more"),
        ("policy", "ebrank:bonus=os:system", "os:system, whose code is not in the file"),
        ("seed", -1, "seed"),
        ("examination.cutoff", 0, "cutoff"),
        ("examination", 5, "'examination' is missing"),
        ("examination.severity", 10**400, "severity"),
        ("examination.curve", [2.0], "probabilities"),
        ("scaling.low", [10**400, 0.0], "not a finite number"),
        ("scaling.kind", ["query"], "scaling is one of"),
        ("state", {}, "weights, an intercept and a ridge"),
        ("state.weights", [1.0], "must have a shape and values"),
        ("state.weights", array("a"), "not a number"),
        ("state.weights", array(1e999), "not a number"),
        ("state.weights", array(float("nan")), "not a number"),
        ("state.weights", array(1.0, shape=[2]), "as many numbers as its shape"),
        ("state.weights", array(1.0, shape=[1, 1]), "one row of weights"),
        ("state.weights", array(1.0, shape=[-1]), "impossible shape"),
        ("state.weights", array(shape=[0, 10**30]), "impossible shape"),
        ("state.intercept", array(), "one intercept"),
        ("state.ridge", array(-1.0), "ridge must be 0 or more"),
    ],
    "auto": [
        ("state.shape", array(*[0.0] * 23), "needs a shape of 24 numbers"),
        ("state.shape", array(*[0.0] * 24, shape=[4, 6]), "needs a shape of 24 numbers"),
        ("state.shape", DROP, "needs a shape of 24 numbers"),
        ("state.grid", array(2.0, -3.0), "two ends within ±16, the lower one first"),
        ("state.grid", DROP, "two ends within ±16"),
        ("state.tilt", DROP, "the tilt must be a number from 0.05 to 9"),
        ("state.clicks", array(), "clicks must be one number"),
        ("state.tilt", array(0.0), "the tilt must be a number from 0.05 to 9"),
        ("state.variance", array(1.0, 2.0), "the variance must be a number"),
        ("state.examination", array(1.0, 0.5, 1.2), "needs probabilities from 0.0001 to 1"),
        ("state.examination", array(0.0, 0.0, 0.0), "or 0 but not all"),
        ("state.examination", array(1.0, 0.5), "differ in length"),
        ("state.examination", array(*[0.5] * 17), "needs a number for each slot"),
        ("state.examination", DROP, "needs a number for each slot"),
        ("state.examination_support", DROP, "needs a number for each slot"),
        ("state.surprise", array(1.0), "a linear prior needs weights, an intercept and a ridge"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "key", "value", "reason"),
    [(kind, *case) for kind, cases in TAMPERED.items() for case in cases],
)
def test_a_tampered_file_is_refused_with_the_reason(
    kind: str, key: str, value: object, reason: str
) -> None:
    model_file.from_bytes(json.dumps(document(kind)).encode(), "whole.json")
    with pytest.raises(ModelFileError, match=reason) as caught:
        model_file.from_bytes(edited(document(kind), key, value), "tampered.json")
    assert "tampered.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\x80\x04pickle", b"[]", b"null", b"[" * 100_000])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an ebrank model"):
        EBRanker.load(path)


def test_missing_unwritable_and_huge_places_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        EBRanker.load(tmp_path / "absent.json")
    with pytest.raises(ModelFileError, match="cannot be read"):
        EBRanker.load(tmp_path)
    with pytest.raises(ModelFileError, match="cannot be written"):
        EBRanker().save(tmp_path / "no-such-folder" / "model.json")
    monkeypatch.setattr(model_file, "LARGEST", 2**20)
    (tmp_path / "huge").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(ModelFileError, match="larger than 1 MiB"):
        EBRanker.load(tmp_path / "huge")


# --- random damage -------------------------------------------------------------------------------

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**400), 10**400),
        st.floats(),
        st.text(max_size=20),
        st.sampled_from(["os:system", "ebrank", "ebrank:bonus=subprocess:Popen", "linear", "ips"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=6,
)


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of everything in a document."""
    yield path
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, child in children:
        yield from places(child, (*path, key))


def damaged(document: Document, data: st.DataObject) -> bytes:
    """Return a document in which a few places were replaced or removed."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        *parents, last = data.draw(st.sampled_from([p for p in places(document) if p]))
        whole: Any = document
        target = reduce(operator.getitem, parents, whole)
        if data.draw(st.booleans()):
            target[last] = data.draw(json_values)
        else:
            del target[last]
    return json.dumps(document).encode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "auto"])
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])  # it compiles
@given(data=st.data())
def test_random_damage_gives_a_ranker_that_works_or_a_refusal(
    kind: str, data: st.DataObject
) -> None:
    """Nothing is imported."""
    content, before, ranker = damaged(document(kind), data), set(sys.modules), EBRanker()
    with contextlib.suppress(ModelFileError):
        ranker = model_file.from_bytes(content, "damaged")
    assert all(name.startswith("ebrank.") for name in set(sys.modules) - before)
    if ranker.state_ is None or len(ranker.state_["weights"]) == 2:
        features, stats = learned_world()
        assert np.all(np.isfinite(ranker.rank(features[:9], stats[:9]).scores))


# --- parts of one's own --------------------------------------------------------------------------

READ = """
import sys
from pathlib import Path
from ebrank import EBRanker, ModelFileError
for path in sorted(Path().glob("*.json")):
    try:
        print(EBRanker.load(path, allow=sys.argv[1:]).policy)
    except ModelFileError as refusal:
        print(refusal)
"""


def read_elsewhere(folder: Path, *policies: str, allow: str = "") -> list[str]:
    """Read model files with these policies in a new process that could import from their folder."""
    document = json.loads(model_file.to_bytes(EBRanker()))
    for place, policy in enumerate(policies):
        (folder / f"{place}.json").write_text(json.dumps(document | {"policy": policy}))
    (folder / "my_bonus.py").write_text(MINE)
    return pasted(f"{sys.executable} -c '{READ}' {allow}", folder).splitlines()


@pytest.mark.slow
def test_a_part_of_ones_own_is_read_only_if_allowed(tmp_path: Path) -> None:
    policy = "ebrank:bonus=my_bonus:Flat,height=2"
    [said] = read_elsewhere(tmp_path, policy)
    assert "the policy has the part my_bonus:Flat, whose code is not in the file" in said
    assert "allow=['my_bonus:Flat']" in said
    [said] = read_elsewhere(tmp_path, policy, allow="my_bonus:Other")
    assert "whose code is not in the file" in said
    assert not (tmp_path / "imported").exists()
    assert read_elsewhere(tmp_path, policy, allow="my_bonus:Flat") == [policy]
    assert (tmp_path / "imported").exists()


@pytest.mark.slow
def test_a_file_that_names_code_imports_nothing(tmp_path: Path) -> None:
    policies = (
        *("ebrank:bonus=my_bonus:system", "ebrank:bonus=my_bonus", "ebrank:bonus=..my_bonus:Flat"),
        *(f"ebrank:{part}=my_bonus:Flat" for part in ("family", "learner", "estimator", "epsilon")),
        *("ebrank:bonus=my_bonus:Flat,bonus=none", "my_bonus:Flat", "my_bonus"),
    )
    said = read_elsewhere(tmp_path, *policies)
    assert [line.partition(": ")[0] for line in said] == [f"{n}.json" for n in range(len(policies))]
    assert not (tmp_path / "imported").exists()
