"""The trainer: a process of its own, which reads a store, fits a prior, prints it, and ends.

It writes nothing, so it may be killed at any moment. The server starts it as

    python -m ebrank.service.trainer STORE

with a `fitting.Job` as JSON on its standard input, and reads a `fitting.Fitted` from its output.
"""

from __future__ import annotations

import os
import sys

import msgspec

from ebrank.errors import EBRankError
from ebrank.service.fitting import Job, fit
from ebrank.service.store.sqlite.view import SqliteView

NICENESS = 10
"""Requests come first."""


def main() -> int:
    """Fit what the standard input asks for; return the exit code."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    try:
        with SqliteView(sys.argv[1]) as store:
            fitted = fit(store, job)
    except EBRankError as problem:
        print(problem, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(fitted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
