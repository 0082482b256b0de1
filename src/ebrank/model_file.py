"""A fitted ranker as one JSON file: portable, readable, and safe to take from a stranger.

The file holds numbers and names, never code. Floats are written so that they read back bit for bit.
Reading checks every field; what is damaged, foreign or newer than this version is refused with the
reason.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ebrank.errors import ModelFileError, ParameterError
from ebrank.examination import Examination
from ebrank.priors import LinearPrior

if TYPE_CHECKING:
    from ebrank.ranker import EBRanker

FORMAT = "ebrank-model"
VERSION = 1
LARGEST = 256 * 2**20  # bytes; a linear model has a few kilobytes

PRIORS = {LinearPrior.kind: LinearPrior}


def write(ranker: EBRanker, path: str | os.PathLike[str]) -> None:
    """Write the ranker; a reader sees the old file or the new one, never a part."""
    prior = ranker.prior_
    if prior is not None and type(prior) not in PRIORS.values():
        raise ModelFileError(
            f"a {type(prior).__name__} cannot be saved; priors that can: {', '.join(PRIORS)}"
        )
    fitted = cast("LinearPrior | None", prior)
    params = ranker.get_params()
    del params["prior"]  # the fitted prior carries its own parameters
    if ranker.examination is not None:
        params["examination"] = asdict(ranker.examination)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "ranker": params,
        "prior": None if fitted is None else {"kind": fitted.kind, **fitted.to_state()},
    }
    _replace(Path(path), json.dumps(document, allow_nan=False, indent=1))


def read(path: str | os.PathLike[str]) -> EBRanker:
    """Return the ranker in the file."""
    from ebrank.ranker import EBRanker

    document = _document(Path(path))
    try:
        params = dict(_section(document, "ranker"))
        if params.get("examination") is not None:
            params["examination"] = Examination(
                **cast("dict[str, Any]", _section(params, "examination"))
            )
        ranker = EBRanker().set_params(**params)
        if document.get("prior") is not None:
            state = dict(_section(document, "prior"))
            kind = state.pop("kind", None)
            if kind not in PRIORS:
                raise ModelFileError(f"unknown kind of prior {kind!r}; known: {', '.join(PRIORS)}")
            ranker.prior_ = PRIORS[kind].from_state(state)
    except (ParameterError, ModelFileError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path}: {error}") from None
    return ranker


def _document(path: Path) -> Mapping[str, object]:
    """Return the parsed file, if it is a model of this version at all."""
    try:
        if path.stat().st_size > LARGEST:
            raise ModelFileError(f"{path}: larger than {LARGEST // 2**20} MiB, not a model")
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ModelFileError(f"{path}: not an ebrank model, or a damaged one") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{path}: not an ebrank model")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"{path}: model version {document.get('version')!r}; this ebrank reads {VERSION}. "
            "Install the ebrank that wrote it, or fit again."
        )
    return document


def _section(document: Mapping[str, object], name: str) -> Mapping[str, object]:
    section = document.get(name)
    if not isinstance(section, dict):
        raise ModelFileError(f"section {name!r} is missing")
    return section


def _replace(path: Path, text: str) -> None:
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None
