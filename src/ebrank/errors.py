"""Errors caused by the input, worded so that a person can fix them.

Every error that a user can cause is an `EBRankError`; the library raises it, and the command line
prints its text and exits with 2. The text names the place and the remedy, so nobody needs a
traceback.
"""

from __future__ import annotations

import os


class EBRankError(Exception):
    """Base of all errors caused by the caller's input rather than by a bug."""


class DataError(EBRankError):
    """A dataset cannot be read: names the file, the line if known, and the remedy.

    >>> print(DataError("label is missing", path="train.txt", line=7, remedy="Start rows with it."))
    train.txt:7: label is missing. Start rows with it.
    """

    def __init__(
        self,
        problem: str,
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        self.problem = problem
        self.path = None if path is None else os.fspath(path)
        self.line = line
        self.remedy = remedy
        place = "" if self.path is None else self.path + ("" if line is None else f":{line}")
        text = f"{place}: {problem}" if place else problem
        super().__init__(f"{text}. {remedy}" if remedy else text)


class ParameterError(EBRankError, ValueError):
    """A parameter is outside its range or in conflict with another."""


class ModelFileError(EBRankError):
    """A model file is damaged, foreign, or of an unknown version."""


class MissingExtraError(EBRankError):
    """An optional part is not installed; names the command that installs it."""


class ClusterError(EBRankError):
    """A cluster cannot be reached, or one of its machines must not run trials."""
