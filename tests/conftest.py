"""Fixtures shared by all tests: the real data where it is at hand, and caches of their own."""

from __future__ import annotations

import asyncio
import atexit
import gc
import inspect
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings
from selenium.webdriver import Chrome
from threadpoolctl import threadpool_limits

from tests.browser import chromium
from tests.postgres import Postgres, postgres

# The same examples every time, however slow the machine; HYPOTHESIS_PROFILE=explore looks further.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("quick", settings.get_profile("steady"), max_examples=20)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A job in the background ignores Ctrl-C, and so would every process that a test starts and stops.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

PROJECT = Path(__file__).parents[1]
SLOW_FIXTURES = {"browser", "database", "finished", "golden", "server", "uninterrupted"}


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests in the package and the docs alone: tests have none."""
    collected = yield
    return [one for one in collected if not isinstance(one, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with slow fixtures as slow; the others say so themselves."""
    for item in items:
        if SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Await a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(_awaited(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in names}))
    return True


async def _awaited(test: Callable[..., Awaitable[None]], given: dict[str, Any]) -> None:
    """Await a test; it gets what asynchronous context managers yield."""
    async with AsyncExitStack() as opened:
        for name, value in given.items():
            if isinstance(value, AbstractAsyncContextManager):
                given[name] = await opened.enter_async_context(value)
        await test(**given)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what tests import, now and while they run: it all stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)  # DuckDB complains of what is left at the end


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules that a test wrote and imported: others may give theirs the same name."""
    before, scratch = set(sys.modules), tmp_path_factory.getbasetemp()
    yield
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(scratch):
            del sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Keep NumPy and SciPy to one core: another worker needs the other."""
    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture(scope="session", autouse=True)
def no_pauses() -> Iterator[None]:
    """Roll up without pauses where a test holds the store: nobody is served meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ebrank.service.store.log.PAUSE", 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waits_for_the_disk() -> Iterator[None]:
    """Flush nothing: no test cuts the power. Tests of flushes look at the calls themselves."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda file: None)
        yield


def _real_data(*parts: str) -> Path:
    """Return a folder of the real data, or skip the test and say what is missing."""
    roots = [PROJECT.parent / "shared" / "data"]
    if "EBRANK_DATA" in os.environ:
        roots.append(Path(os.environ["EBRANK_DATA"]))
    for root in roots:
        folder = root.joinpath(*parts)
        if folder.is_dir():
            return folder
    pytest.skip(f"real data absent: no {'/'.join(parts)} in ../shared/data or EBRANK_DATA")


@pytest.fixture(scope="session")
def ubi_folder() -> Path:
    """A log of User Behavior Insights over ESCI's queries, and ESCI's judgments."""
    return _real_data("UBI-ESCI")


@pytest.fixture(scope="session")
def mq2008_folder() -> Path:
    """Fold 1 of LETOR 4.0 MQ2008."""
    return _real_data("MQ2008", "Fold1")


@pytest.fixture(scope="session")
def mslr_sample_folder() -> Path:
    """Whole queries sampled from MSLR-WEB30K."""
    return _real_data("MSLR-WEB30K-sample")


@pytest.fixture(scope="session")
def browser() -> Iterator[Chrome]:
    """Headless Chromium; `make browser` installs it."""
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A PostgreSQL of this process, for stores in schemas of their own."""
    with postgres(fsync=False) as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def dataset_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep parsed datasets out of the user's cache; compiled kernels stay in the shared one."""
    folder = tmp_path_factory.mktemp("dataset-cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EBRANK_DATASET_CACHE", str(folder))
        yield folder
