"""Pictures and the page of the sample, drawn once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ebrank.paper.report.figures.render import svg_file
from ebrank.paper.report.page.html import page
from tests.paper.report.sample import FIGURE, OTHERS, document


@pytest.fixture(scope="session")
def over_time_svg() -> bytes:
    return svg_file(FIGURE)


@pytest.fixture(scope="session")
def kinds_svg() -> bytes:
    return svg_file(OTHERS)


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(document()))
    return path
