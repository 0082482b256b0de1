"""Which version goes live, and who decides."""

from __future__ import annotations

import asyncio

from ebrank import EBRanker, LinearPrior, model_file
from ebrank.service.engine import Engine
from ebrank.service.fitting import Fitted, Job
from ebrank.service.store.memory import MemoryStore
from tests.service.scenes import play


def better() -> Fitted:
    """Return what a run makes that is better than the version it was judged against."""
    ranker = EBRanker()
    ranker.prior_ = LinearPrior.from_state({"parameters": {}, "weights": [1.0], "intercept": 0.0})
    document = model_file.to_bytes(ranker).decode()
    return Fitted(9, True, "it is better", 0.1, 0.2, document)


def test_a_run_does_not_undo_what_somebody_decided_meanwhile() -> None:
    store = MemoryStore()

    async def scene(engine: Engine) -> None:
        decided = asyncio.Event()
        judged_against = []

        async def run(job: Job) -> Fitted:
            judged_against.append(job.active)
            await decided.wait()
            return better()

        engine._training._run = run
        for roll_back in (False, True):
            decided.clear()
            await engine.train()
            await asyncio.sleep(0)
            if roll_back:
                await engine.activate(0)
            decided.set()
            await engine._training.finished()
        assert judged_against == [0, 1]
        answer = await engine.models()
        assert answer.active == store.active_model() == engine.version == 0
        first, second = answer.models
        assert (first.activated, second.activated) == (True, False)
        assert second.reason == "it is better; but version 0 was made active during the run"
        assert answer.training.outcome == f"version 2 stays off: {second.reason}"
        assert (await engine.activate(2)).active == 2

    play(scene, store=store)
