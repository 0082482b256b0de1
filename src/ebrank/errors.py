"""What goes wrong because of the input, told so that a person can mend it.

Every error a user can cause is an `EBRankError`; the command line prints its text and exits with 2,
the library raises it. The text names the place and the remedy, so no traceback is needed.
"""

from __future__ import annotations

import os


class EBRankError(Exception):
    """Base of all errors caused by the caller's input rather than by a bug."""


class DataError(EBRankError):
    """A dataset that cannot be read: names the file, the line where known, and the remedy.

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
    """A parameter outside its range or in conflict with another."""


class ModelFileError(EBRankError):
    """A model file that is damaged, foreign, or of an unknown version."""


class MissingExtraError(EBRankError):
    """An optional part that is not installed, with the command that installs it."""


class ClusterError(EBRankError):
    """A cluster that cannot be reached, or a machine of it that must not run trials."""
