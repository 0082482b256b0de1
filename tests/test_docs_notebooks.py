"""The notebooks run, and print what is committed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.slow


def printed(notebook: NotebookNode) -> list[str]:
    """Return what each cell of code shows, in words; of a picture, that there is one."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [
        "\n".join(shown.get("text") or shown["data"]["text/plain"] for shown in cell.outputs)
        for cell in cells
    ]


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_is_committed(path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    committed = nbformat.read(path, as_version=4)
    again = nbformat.read(path, as_version=4)
    NotebookClient(again, timeout=300, kernel_name="python3").execute()
    assert printed(again) == printed(committed)
