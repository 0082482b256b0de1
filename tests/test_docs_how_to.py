"""The pages that say how to do something: every command of theirs is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shell import shell

PAGES = sorted((Path(__file__).parents[1] / "docs" / "how-to").glob("*.md"))
BLOCK = re.compile(r"```(sh|toml|python)\n(.*?)```", re.DOTALL)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_works_as_written(page: Path, tmp_path: Path) -> None:
    with shell(tmp_path) as followed:
        if page.stem == "back-up":
            followed.run("ebrank serve &")  # the page begins with a store that is served
            with followed.client() as client:
                client.put_items("tea", {"sencha": [1.0], "assam": [2.0]})
                client.click(client.rank("tea"), "assam")
        for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind == "toml":
                name = text.splitlines()[0].removeprefix("# ")
                (tmp_path / name).write_text(text, encoding="utf-8")
            elif kind == "python":
                with followed.client() as client:
                    exec(compile(text, str(page), "exec"), {"client": client})
            else:
                followed.run(text)
