"""The trainer: a separate process that reads a store, fits a prior, prints it, and ends.

It writes nothing, so it may be killed at any moment. The server starts it with `in_process` as

    python -m ebrank.service.learning.trainer

with the store's URL, which may hold a password, and a `TrainingJob` as JSON on its standard input,
and reads a `TrainingResult` from its output.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

import msgspec

from ebrank.errors import EBRankError
from ebrank.service.learning.fitting import TrainingJob, TrainingResult, TrainingTable, fit, gather
from ebrank.service.store import Store, open

NICENESS = 10
"""Requests come first."""


class TrainerError(EBRankError):
    """A run that ended without a result."""


async def in_process(
    url: str, task: TrainingJob, max_seconds: float | None = None
) -> TrainingResult:
    """Return what a trainer in a separate process learns from a store; stop it if it is slow."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ebrank.service.learning.trainer",
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    try:
        async with asyncio.timeout(max_seconds):
            output, errors = await process.communicate(msgspec.json.encode((url, task)))
    except (asyncio.CancelledError, TimeoutError) as problem:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(problem, asyncio.CancelledError):
            raise
        raise TrainerError(
            f"the trainer was ended after {max_seconds:g} seconds. Raise training.max_seconds, "
            "or give the machine more room"
        ) from None
    if process.returncode:
        lines = errors.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else f"it ended with code {process.returncode}"
        raise TrainerError(f"the trainer failed: {reason}")
    return msgspec.json.decode(output, type=TrainingResult)


async def in_thread(store: Store, task: TrainingJob) -> TrainingResult:
    """Return what is learned from a store that no other process can read."""
    return await asyncio.to_thread(fit, await gather(store, task, store.log), task)


def main() -> int:
    """Fit what the standard input asks for; return the exit code."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    url, job = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[str, TrainingJob])
    try:
        fitted = fit(asyncio.run(_gathered(url, job)), job)
    except EBRankError as problem:
        print(problem, file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(fitted))
    return 0


async def _gathered(url: str, job: TrainingJob) -> TrainingTable | None:
    """Read a store and close it: an open snapshot keeps the server from checkpointing."""
    async with open(url, "browse") as store:
        return await gather(store, job, store.log)


if __name__ == "__main__":
    sys.exit(main())
