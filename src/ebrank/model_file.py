"""A fitted ranker as one JSON file: portable, readable, and safe to take from a stranger.

The file holds numbers and names, never code. Floats are written so that they read back bit for bit.
Reading checks every field; what is damaged, foreign or newer than this version is refused with the
reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ebrank.errors import ModelFileError, ParameterError
from ebrank.examination import Examination
from ebrank.features import Scaling
from ebrank.files import write_whole
from ebrank.priors import LinearPrior

if TYPE_CHECKING:
    from ebrank.priors import Prior
    from ebrank.ranker import EBRanker

FORMAT = "ebrank-model"
VERSION = 2
UNSCALED = 1  # the version before scaling was a part of the file; it is still read
LARGEST = 256 * 2**20  # bytes; a linear model has a few kilobytes

PRIORS = {LinearPrior.kind: LinearPrior}


def write(ranker: EBRanker, path: str | os.PathLike[str]) -> None:
    """Write the ranker; a reader sees the old file or the new one, never a part."""
    content = to_bytes(ranker)
    try:
        write_whole(Path(path), content)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None


def to_bytes(ranker: EBRanker) -> bytes:
    """Return what the file of a ranker holds."""
    given, learned = _known(ranker.prior), _known(ranker.prior_)
    params = ranker.get_params()
    params["prior"] = given and {"kind": given.kind, "parameters": given.get_params()}
    params["examination"] = ranker.examination and asdict(ranker.examination)
    params["scaling"] = ranker.scaling and asdict(ranker.scaling)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "ranker": params,
        "learned": learned and {"kind": learned.kind, **learned.to_state()},
    }
    return json.dumps(document, allow_nan=False, indent=1, default=_plain).encode()


def read(path: str | os.PathLike[str]) -> EBRanker:
    """Return the ranker in the file."""
    return from_bytes(_content(Path(path)), str(path))


def from_bytes(content: bytes, name: str) -> EBRanker:
    """Return the ranker that `to_bytes` described; `name` says in errors where it came from."""
    document = _document(content, name)
    try:
        return _ranker(document)
    except (ParameterError, ModelFileError, TypeError) as error:
        raise ModelFileError(f"{name}: {error}") from None


def _ranker(document: Mapping[str, Any]) -> EBRanker:
    """Return the ranker that a document describes; anything odd in it raises."""
    from ebrank.ranker import EBRanker

    _require_keys("the file", document, {"format", "version", "ranker", "learned"})
    params = dict(_section(document, "ranker"))
    if document["version"] == UNSCALED:
        params.setdefault("scaling", None)
    _require_keys("the ranker", params, set(EBRanker().get_params()))
    if params["examination"] is not None:
        params["examination"] = Examination(**_section(params, "examination"))
    if params["scaling"] is not None:
        params["scaling"] = Scaling(**_section(params, "scaling"))
    if params["prior"] is not None:
        given = _section(params, "prior")
        _require_keys("the prior", given, {"kind", "parameters"})
        params["prior"] = _kind(given).from_state(
            {"parameters": given["parameters"], "weights": None, "intercept": 0.0}
        )
    ranker = EBRanker(**params)
    if document["learned"] is not None:
        state = dict(_section(document, "learned"))
        kind = _kind(state)
        del state["kind"]
        learned = kind.from_state(state)
        EBRanker(learned, params["beta"], estimator=params["estimator"])  # raises where they differ
        ranker.prior_ = learned
    return ranker


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST:
            raise ModelFileError(f"{path}: larger than {LARGEST // 2**20} MiB, not a model")
        return path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _document(content: bytes, name: str) -> Mapping[str, Any]:
    """Return the parsed file, if it is a model of a known version at all."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{name}: not an ebrank model, or a damaged one") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name}: not an ebrank model")
    version = document.get("version")
    if type(version) is not int or version not in (UNSCALED, VERSION):
        raise ModelFileError(
            f"{name}: model version {version!r}; this ebrank reads up to {VERSION}. "
            "Install the ebrank that wrote it, or fit again."
        )
    return document


def _known(prior: Prior | None) -> LinearPrior | None:
    """Return a prior of a kind that can be written."""
    if prior is not None and type(prior) not in PRIORS.values():
        raise ModelFileError(
            f"a {type(prior).__name__} cannot be saved; priors that can: {', '.join(PRIORS)}"
        )
    return cast("LinearPrior | None", prior)


def _kind(section: Mapping[str, Any]) -> type[LinearPrior]:
    kind = section.get("kind")
    if not isinstance(kind, str) or kind not in PRIORS:
        raise ModelFileError(f"unknown kind of prior {kind!r}; known: {', '.join(PRIORS)}")
    return PRIORS[kind]


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name)
    if not isinstance(section, dict):
        raise ModelFileError(f"section {name!r} is missing")
    return section


def _require_keys(owner: str, section: Mapping[str, Any], keys: set[str]) -> None:
    if set(section) != keys:
        odd = sorted(set(section) ^ keys)
        raise ModelFileError(f"{owner} lacks, or should not have, {', '.join(odd)}")


def _plain(value: object) -> object:
    """Return what JSON can hold of a NumPy number."""
    if isinstance(value, np.generic):
        return value.item()
    raise ModelFileError(f"{value!r} cannot be saved")
