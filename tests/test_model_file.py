"""A model file from a stranger can be wrong in every way; it is refused and never run."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebrank import BehaviorStats, EBRanker, Examination, ModelFileError, ParameterError, model_file
from ebrank.features import Scaling
from ebrank.priors.base import State
from ebrank.priors.learners.linear import Linear

Document = dict[str, Any]


@dataclass(frozen=True)
class Echo(Linear):
    """A learner whose states may be anything."""

    name = "echo"

    def check_state(self, state: State) -> None:
        """Take it."""


# Written by ebrank 0.1.
OLD_FITTED: Document = {
    "format": "ebrank-model",
    "version": 2,
    "ranker": {
        "prior": {
            "kind": "linear",
            "parameters": {
                "beta": 4.0,
                "estimator": "exposure",
                "l2": 0.25,
                "min_impressions": 1,
                "clamp": True,
                "early_stopping": True,
                "patience": 5,
                "max_iterations": 200,
                "tolerance": 0.001,
                "warm_start": False,
                "threads": None,
            },
        },
        "beta": 4.0,
        "epsilon": 3.0,
        "estimator": "exposure",
        "examination": {"severity": 1.0, "cutoff": None, "curve": [1.0, 0.5]},
        "seed": 7,
        "scaling": {"kind": "query", "low": None, "high": None},
    },
    "learned": {
        "kind": "linear",
        "parameters": {
            "beta": 4.0,
            "estimator": "exposure",
            "l2": 0.25,
            "min_impressions": 1,
            "clamp": True,
            "early_stopping": True,
            "patience": 5,
            "max_iterations": 200,
            "tolerance": 0.001,
            "warm_start": False,
            "threads": None,
        },
        "weights": [-0.1189794983894345, -0.19821855703236682],
        "intercept": 1.8965060491292085,
    },
}
OLD_UNFITTED: Document = {
    "format": "ebrank-model",
    "version": 2,
    "ranker": {
        "prior": {
            "kind": "linear",
            "parameters": {
                "beta": 5.0,
                "estimator": "ips",
                "l2": 0.5,
                "min_impressions": 0,
                "clamp": True,
                "early_stopping": True,
                "patience": 5,
                "max_iterations": 200,
                "tolerance": 0.001,
                "warm_start": False,
                "threads": None,
            },
        },
        "beta": 5.0,
        "epsilon": 1.0,
        "estimator": "ips",
        "examination": None,
        "seed": 0,
        "scaling": None,
    },
    "learned": None,
}
OLD_PLAIN: Document = {
    "format": "ebrank-model",
    "version": 2,
    "ranker": {
        "prior": None,
        "beta": 5.0,
        "epsilon": 2.0,
        "estimator": "ips",
        "examination": None,
        "seed": 0,
        "scaling": None,
    },
    "learned": None,
}
OLD_ORDER, OLD_SCORES = (
    [0, 1, 2, 3],
    [0.6413444428297738, 0.6300082726820954, 0.5953944493601672, 0.5439354253942282],
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    features = np.linspace(0, 1, 20, dtype=np.float32).reshape(10, 2)
    stats = BehaviorStats.zeros(10)
    for _ in range(5):
        stats.record([3, 1, 7], [1, 0, 1])
    path = tmp_path_factory.mktemp("models") / "model.json"
    EBRanker(examination=Examination(curve=(1.0, 0.5)), epsilon=7.0).fit(features, stats).save(path)
    return path


def as_bytes(document: object) -> bytes:
    return json.dumps(document).encode()


def test_the_file_is_plain_json_and_reads_back(saved: Path) -> None:
    document = json.loads(saved.read_text())
    assert document["format"] == "ebrank-model"
    assert document["version"] == 3
    assert document["policy"] == "ebrank:epsilon=7"
    assert document["state"]["weights"]["shape"] == [2]
    loaded = EBRanker.load(saved)
    assert loaded.examination == Examination(curve=(1.0, 0.5))
    assert model_file.to_bytes(loaded) == saved.read_bytes()


@pytest.mark.parametrize(
    "policy", ["ebrank", "thompson:beta=2", "ebrank:bonus=none,estimator=exact,ridge=0.5"]
)
def test_an_unfitted_ranker_can_be_saved_too(tmp_path: Path, policy: str) -> None:
    ranker = EBRanker(policy, seed=3)
    ranker.save(tmp_path / "new.json")
    loaded = EBRanker.load(tmp_path / "new.json")
    assert loaded.state_ is None
    assert repr(loaded) == repr(ranker)


def test_states_of_any_shape_read_back_bit_for_bit() -> None:
    ranker = EBRanker(f"ebrank:learner={__name__}:Echo")
    ranker.state_ = {
        "trees": np.random.default_rng(0).normal(size=(2, 3, 4)),
        "alone": np.array(1 / 3),
        "none": np.zeros((0, 5)),
        "tiny": np.array([5e-324, -0.0, 1e30]),
    }
    loaded = model_file.from_bytes(model_file.to_bytes(ranker), "echo", allow=[f"{__name__}:Echo"])
    assert loaded.state_ is not None
    assert loaded.state_.keys() == ranker.state_.keys()
    for name, array in ranker.state_.items():
        assert loaded.state_[name].shape == array.shape
        assert loaded.state_[name].tobytes() == array.tobytes()


# --- damage -------------------------------------------------------------------------------------


def change(key: str, value: object) -> Callable[[Document], None]:
    """Return an edit that puts a value under a dotted key."""

    def edit(document: Document) -> None:
        *parents, last = key.split(".")
        for parent in parents:
            document = document[parent]
        document[last] = value

    return edit


def remove(key: str) -> Callable[[Document], None]:
    """Return an edit that removes a dotted key."""

    def edit(document: Document) -> None:
        *parents, last = key.split(".")
        for parent in parents:
            document = document[parent]
        del document[last]

    return edit


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (change("format", "other"), "not an ebrank model"),
        (change("version", 99), "version 99; this ebrank reads up to 3"),
        (change("version", True), "version True"),
        (change("version", "3"), "version '3'"),
        (change("version", 2), "lacks, or should not have"),
        (change("extra", 1), "extra"),
        (remove("state"), "state"),
        (remove("seed"), "seed"),
        (change("policy", None), "must be a text"),
        (change("policy", "nobody"), "no policy is called 'nobody'"),
        (change("policy", "ebrank:epsilon=-1"), "epsilon takes a number of 0 or more"),
        (change("policy", "ebrank:epsilon=much"), "epsilon takes a number"),
        (change("policy", "ebrank:epsilon=1e999"), "epsilon"),
        (change("policy", "ebrank:unknown=1"), "no parameter 'unknown'"),
        (change("policy", "ebrank:learner=os"), "learner takes linear or module:Class"),
        (change("policy", "ebrank:learner=../linear"), "learner takes"),
        (change("seed", -1), "seed"),
        (change("seed", True), "seed"),
        (change("seed", 1.5), "seed"),
        (change("examination", {"cutoff": 0}), "cutoff"),
        (change("examination", {"nonsense": 0}), "nonsense"),
        (change("examination", 5), "examination"),
        (change("examination.curve", [10**400]), "curve"),
        (change("scaling", 5), "scaling"),
        (change("scaling", {"kind": "global", "low": [10**400], "high": [1]}), "low"),
        (change("scaling", {"kind": "global", "low": [2.0], "high": [1.0]}), "low end"),
        (change("state", [1]), "'state' is missing"),
        (change("state", {}), "weights"),
        (remove("state.weights"), "weights"),
        (remove("state.ridge"), "ridge"),
        (change("state.extra", {"shape": [1], "values": [0.0]}), "extra"),
        (change("state.intercept", {"shape": [2], "values": [0.0, 1.0]}), "intercept"),
        (change("state.weights", {"shape": [1, 2], "values": [0.0, 1.0]}), "weights"),
        (change("state.weights", [1.0, 2.0]), "weights must have a shape and values"),
        (change("state.weights.shape", [3]), "as many numbers"),
        (change("state.weights.shape", [-1]), "impossible shape"),
        (change("state.weights.shape", [True]), "impossible shape"),
        (change("state.weights.shape", 2), "impossible shape"),
        (change("state.weights.shape", [1] * 5), "impossible shape"),
        (change("state.weights.values", "12"), "as many numbers"),
        (change("state.weights.values", ["a", 1]), "holds 'a'"),
        (change("state.weights.values", [True, 1]), "holds True"),
        (change("state.weights.values", [None, 1]), "holds None"),
        (change("state.weights.values", [[1.0], 1]), "holds"),
        (change("state.weights.values", [1e308, 1]), "not a number up to"),
        (change("state.weights.values", [1e999, 1]), "holds inf"),
        (change("state.weights.values", [float("nan"), 1]), "holds nan"),
        (change("state.weights.values", [10**400, 1]), "not a number up to"),
    ],
)
def test_a_tampered_file_is_refused_with_the_reason(
    saved: Path, tmp_path: Path, edit: Callable[[Document], None], reason: str
) -> None:
    document = json.loads(saved.read_text())
    edit(document)
    path = tmp_path / "tampered.json"
    path.write_bytes(as_bytes(document))
    with pytest.raises(ModelFileError, match=reason) as caught:
        EBRanker.load(path)
    assert "tampered.json" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\x80\x04pickle", b"[]", b"null", b"[" * 100_000])
def test_anything_but_a_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an ebrank model"):
        EBRanker.load(path)


@given(cut=st.integers(0, 10_000))
def test_a_truncated_file_is_refused(saved: Path, cut: int) -> None:
    content = saved.read_bytes()
    with pytest.raises(ModelFileError):
        model_file.from_bytes(content[: cut % len(content)], "cut")


def load_and_rank(content: bytes) -> None:
    """Read a damaged file: it is refused as such, or ranks."""
    try:
        ranker = model_file.from_bytes(content, "damaged")
    except ModelFileError:
        return
    features = np.array([[0.1, 0.2], [0.3, 0.1]], np.float32)
    # a whole model may still be one of other features, or of a curve that says nothing
    with suppress(ParameterError):
        ranker.rank(features, BehaviorStats.of(shown=[3, 0], clicks=[1, 0]))


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_random_bytes_only_ever_give_a_model_file_error(
    saved: Path, damage: list[tuple[int, int]]
) -> None:
    content = bytearray(saved.read_bytes())
    for place, byte in damage:
        content[place % len(content)] = byte
    load_and_rank(bytes(content))


odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 3, 10**30, 10**400, 1e308, float("inf"), float("nan"), 0.5])
    | st.sampled_from(["", "ebrank", "ebrank:", "ebrank:=", "query", "global", "\ud800", "a:b"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["shape", "values", "kind", "low", "x"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)


def places(node: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all that a document holds."""
    inner = dict(enumerate(node)) if isinstance(node, list) else node
    held = inner.items() if isinstance(inner, dict) else ()
    below = [place for key, value in held for place in places(value, (*path, key))]
    return [path, *below] if path else below


@given(st.data())
def test_random_values_only_ever_give_a_model_file_error(saved: Path, data: st.DataObject) -> None:
    fitted = json.loads(saved.read_text())
    document = copy.deepcopy(data.draw(st.sampled_from([fitted, OLD_FITTED, OLD_UNFITTED])))
    *parents, last = data.draw(st.sampled_from(places(document)))
    node = document
    for key in parents:
        node = node[key]
    node[last] = data.draw(odd_values)
    load_and_rank(as_bytes(document))


def test_missing_and_unwritable_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"absent\.json: cannot be read: No such file"):
        EBRanker.load(tmp_path / "absent.json")
    with pytest.raises(ModelFileError, match="cannot be written: No such file"):
        EBRanker().save(tmp_path / "no-such-folder" / "model.json")


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(model_file.LARGEST + 1)
    with pytest.raises(ModelFileError, match="larger than 256 MiB"):
        EBRanker.load(path)


# --- parts of your own --------------------------------------------------------------------------

PART = """
from dataclasses import dataclass
from ebrank.bonus import Bonus

@dataclass(frozen=True)
class Curious(Bonus):
    name, help = "curious", "A constant."

    @staticmethod
    def value():
        return 0.25
"""


def test_a_part_of_one_s_own_is_imported_only_if_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_part_of_my_own.py").write_text(PART)
    monkeypatch.syspath_prepend(tmp_path)
    document = json.loads(model_file.to_bytes(EBRanker()))
    document["policy"] = "ebrank:bonus=a_part_of_my_own:Curious"
    for allowed in ([], ["a_part_of_my_own:Other"], ["a_part_of_my_own"]):
        with pytest.raises(ModelFileError, match="the part a_part_of_my_own:Curious") as caught:
            model_file.from_bytes(as_bytes(document), "foreign", allow=allowed)
        assert "allow=['a_part_of_my_own:Curious']" in str(caught.value)
        assert "a_part_of_my_own" not in sys.modules
    (tmp_path / "model.json").write_bytes(as_bytes(document))
    ranker = EBRanker.load(tmp_path / "model.json", allow=["a_part_of_my_own:Curious"])
    sys.modules.pop("a_part_of_my_own")
    assert ranker.policy.bonus.name == "curious"


@pytest.mark.parametrize(
    "policy",
    [
        "ebrank:bonus=antigravity:X",
        "ebrank:family=antigravity:X",
        "ebrank:learner=antigravity:X",
        "ebrank:epsilon=1,learner=antigravity:X,ridge=1",
        "thompson:bonus=antigravity:X",
        "ebrank:estimator=antigravity:X",
        "ebrank:unknown=antigravity:X",
        "antigravity:X",
        "ebrank:bonus==antigravity:X",
        "ebrank:bonus=antigravity",
    ],
)
def test_reading_imports_nothing_that_a_file_names(policy: str) -> None:
    document = json.loads(model_file.to_bytes(EBRanker()))
    document["policy"] = policy
    with pytest.raises(ModelFileError):
        model_file.from_bytes(as_bytes(document), "foreign")
    assert "antigravity" not in sys.modules


# --- what else a file holds ---------------------------------------------------------------------


def test_numbers_of_numpy_can_be_saved_and_others_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    curve = Examination(severity=np.float32(0.5))  # type: ignore[arg-type]
    EBRanker(epsilon=np.float32(3), seed=np.int64(4), examination=curve).save(path)  # type: ignore[arg-type]
    loaded = EBRanker.load(path)
    assert loaded.examination == Examination(severity=0.5)
    assert (loaded.policy.values()["epsilon"], loaded.seed) == (3.0, 4)
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize(
    "scaling", [None, Scaling("query"), Scaling("global", (0.1, -2.0), (0.3, 7.5))]
)
def test_the_scaling_is_a_part_of_the_file(tmp_path: Path, scaling: Scaling | None) -> None:
    EBRanker(scaling=scaling).save(tmp_path / "model.json")
    assert EBRanker.load(tmp_path / "model.json").scaling == scaling


# --- files of ebrank 0.1 ------------------------------------------------------------------------

OLD_POLICY = "ebrank:epsilon=3,estimator=exposure,min_impressions=1,clamp=true,beta=4,ridge=0.25"


def test_version_2_is_still_read_and_ranks_as_it_did() -> None:
    ranker = model_file.from_bytes(as_bytes(OLD_FITTED), "old")
    assert str(ranker.policy) == OLD_POLICY
    assert ranker.examination == Examination(curve=(1.0, 0.5))
    assert (ranker.scaling, ranker.seed) == (Scaling("query"), 7)
    features = np.array([[0, 0.1], [0.2, 0.3], [0.9, 0.4], [0.5, 0.8]], np.float32)
    stats = BehaviorStats.zeros(4)
    for user in range(6):
        stats.record([3, 1], [user % 2, user % 3 == 0])
    ranking = ranker.rank(features, stats)
    assert ranking.order.tolist() == OLD_ORDER
    np.testing.assert_allclose(ranking.scores, OLD_SCORES, rtol=1e-8)
    again = model_file.from_bytes(model_file.to_bytes(ranker), "new")
    np.testing.assert_array_equal(again.rank(features, stats).scores, ranking.scores)


def test_version_2_without_a_fit_keeps_the_parameters_of_its_prior() -> None:
    ranker = model_file.from_bytes(as_bytes(OLD_UNFITTED), "old")
    assert str(ranker.policy) == "ebrank:epsilon=1,clamp=true,ridge=0.5"
    assert ranker.state_ is None
    plain = model_file.from_bytes(as_bytes(OLD_PLAIN), "old")
    assert str(plain.policy) == "ebrank:epsilon=2"


def test_version_1_had_no_scaling() -> None:
    document = copy.deepcopy(OLD_FITTED)
    document["version"] = 1
    del document["ranker"]["scaling"]
    old = model_file.from_bytes(as_bytes(document), "old")
    assert (str(old.policy), old.scaling) == (OLD_POLICY, None)
    assert old.state_ is not None


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (change("ranker", None), "'ranker' is missing"),
        (change("ranker.epsilon", -1), "epsilon"),
        (change("ranker.epsilon", "much"), "epsilon"),
        (change("ranker.epsilon", True), "epsilon"),
        (change("ranker.beta", None), "beta"),
        (change("ranker.estimator", ["ips"]), "estimator"),
        (change("ranker.examination", {"cutoff": 0}), "cutoff"),
        (remove("ranker.seed"), "seed"),
        (change("learned", [1]), "'learned' is missing"),
        (change("learned.weights", ["a"]), "weights"),
        (change("learned.weights", [[1.0]]), "weights"),
        (change("learned.weights", 3), "len"),
        (change("learned.weights", "123"), "weights"),
        (change("learned.weights", [1e999]), "weights"),
        (change("learned.intercept", None), "intercept"),
        (change("learned.parameters", 7), "'parameters' is missing"),
        (change("learned.parameters.clamp", 1), "clamp"),
        (change("learned.parameters.l2", -1.0), "ridge"),
        (change("extra", 1), "extra"),
    ],
)
def test_a_tampered_old_file_is_refused_with_the_reason(
    edit: Callable[[Document], None], reason: str
) -> None:
    document = copy.deepcopy(OLD_FITTED)
    edit(document)
    with pytest.raises(ModelFileError, match=reason):
        model_file.from_bytes(as_bytes(document), "old")
