"""A fitted ranker as one JSON file: portable, readable, and safe to take from a stranger.

The file holds the text of a policy and plain arrays of numbers, for any family and learner. It
holds no code, and reading it imports none: a policy with your own part (`module:Class`) is read
only if you allow that part by name. Floats are written so that they read back bit for bit. Reading
checks every field; a file that is damaged, foreign or newer than this version is rejected with the
reason.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ebrank.environment.files import write_whole
from ebrank.errors import ModelFileError, ParameterError
from ebrank.evidence import Examination
from ebrank.model.policy import policies
from ebrank.model.policy.scaling import Scaling

if TYPE_CHECKING:
    from ebrank.model.policy.ranker import EBRanker

FORMAT = "ebrank-model"
VERSION = 3
LARGEST = 256 * 2**20  # bytes; a linear model has a few kilobytes
LARGEST_NUMBER = 1e30  # a score that is a sum of larger ones could overflow
MOST_AXES = 4


class ForeignPart(ModelFileError):
    """The policy in a file has a part of somebody's own, which its reader has not allowed."""


def write(ranker: EBRanker, path: str | os.PathLike[str]) -> None:
    """Write the ranker; a reader sees the old file or the new one, never half of it."""
    content = to_bytes(ranker)
    try:
        write_whole(Path(path), content)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None


def to_bytes(ranker: EBRanker) -> bytes:
    """Return what the file of a ranker holds."""
    state = None
    if ranker.state_ is not None:
        state = {name: _written(array) for name, array in ranker.state_.items()}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "policy": str(ranker.policy),
        "examination": asdict(ranker.examination),
        "scaling": ranker.scaling and asdict(ranker.scaling),
        "seed": ranker.seed,
        "state": state,
    }
    return json.dumps(document, allow_nan=False, indent=1).encode()


def read(path: str | os.PathLike[str], *, allow: Iterable[str] = ()) -> EBRanker:
    """Return the ranker in the file; `allow` names your own parts, as `module:Class`."""
    return from_bytes(_content(Path(path)), str(path), allow=allow)


def from_bytes(content: bytes, name: str, *, allow: Iterable[str] = ()) -> EBRanker:
    """Return the ranker that `to_bytes` described; `name` says in errors where it came from."""
    document = _document(content, name)
    try:
        return _ranker(document, frozenset(allow))
    except (ParameterError, ModelFileError, TypeError) as error:
        kind = ForeignPart if isinstance(error, ForeignPart) else ModelFileError
        raise kind(f"{name}: {error}") from None


def _ranker(document: Mapping[str, Any], allowed: frozenset[str]) -> EBRanker:
    """Return the ranker that a document describes; raise if anything in it is odd."""
    from ebrank.model.policy.ranker import EBRanker

    keys = {"format", "version", "policy", "examination", "scaling", "seed", "state"}
    _require_keys("the file", document, keys)
    text = document["policy"]
    if not isinstance(text, str):
        raise ModelFileError(f"the policy must be a text, not {text!r}")
    _check_parts(text, allowed)
    ranker = EBRanker(
        policies.parse(text),
        examination=Examination(**_section(document, "examination")),
        scaling=document["scaling"] and Scaling(**_section(document, "scaling")),
        seed=document["seed"],
    )
    if document["state"] is not None:
        given = _section(document, "state")
        ranker.state_ = {name: _read_array(name, array) for name, array in given.items()}
        ranker.policy.prior.check_state(ranker.state_)
    return ranker


def _check_parts(text: str, allowed: frozenset[str]) -> None:
    """Raise if a policy would import a module that its reader has not allowed."""
    for setting in text.partition(":")[2].split(","):
        value = setting.partition("=")[2]
        if ":" in value and value not in allowed:
            raise ForeignPart(
                f"the policy has the part {value}, whose code is not in the file. If you trust "
                f"it, read the file with allow=[{value!r}]"
            )


def _written(array: Any) -> dict[str, Any]:  # noqa: ANN401 (an array)
    values = np.asarray(array, np.float64)
    return {"shape": list(values.shape), "values": values.ravel().tolist()}


def _read_array(name: str, value: object) -> Any:  # noqa: ANN401 (an array)
    """Return an array of a state; raise if it is not one."""
    if not isinstance(value, dict) or set(value) != {"shape", "values"}:
        raise ModelFileError(f"{name} must have a shape and values")
    shape, numbers = value["shape"], value["values"]
    axes = isinstance(shape, list) and len(shape) <= MOST_AXES
    if not axes or not all(type(size) is int and 0 <= size <= LARGEST for size in shape):
        raise ModelFileError(f"{name} has an impossible shape: {shape!r}")
    if not isinstance(numbers, list) or len(numbers) != math.prod(shape):
        raise ModelFileError(f"{name} does not hold as many numbers as its shape says")
    for number in numbers:
        if type(number) not in (int, float) or not abs(number) <= LARGEST_NUMBER:
            raise ModelFileError(f"{name} holds {number!r}, not a number up to ±{LARGEST_NUMBER:g}")
    return np.array(numbers, np.float64).reshape(shape)


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise ModelFileError(f"{path}: larger than {LARGEST // 2**20} MiB, not a model")
        return path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _document(content: bytes, name: str) -> Mapping[str, Any]:
    """Return the parsed file; raise if it is not a model of this version."""
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError):
        raise ModelFileError(f"{name}: not an ebrank model, or a damaged one") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name}: not an ebrank model")
    if (version := document.get("version")) != VERSION:
        raise ModelFileError(
            f"{name}: model version {version!r}; this ebrank reads version {VERSION}. "
            "Install the ebrank that wrote it, or fit again."
        )
    return document


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name)
    if not isinstance(section, dict):
        raise ModelFileError(f"section {name!r} is missing")
    return section


def _require_keys(owner: str, section: Mapping[str, Any], keys: set[str]) -> None:
    if set(section) != keys:
        odd = sorted(set(section) ^ keys)
        raise ModelFileError(f"{owner} lacks, or should not have, {', '.join(odd)}")
