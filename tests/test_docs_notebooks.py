"""The notebooks run, and print what is committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from jupyter_client.manager import KernelManager
    from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kernel() -> Iterator[KernelManager]:
    """A process for all notebooks, which imports once."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


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
def test_a_notebook_prints_what_is_committed(path: Path, kernel: KernelManager) -> None:
    import nbformat
    from nbclient import NotebookClient

    committed = nbformat.read(path, as_version=4)
    again = nbformat.read(path, as_version=4)
    again.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))  # names of notebooks before
    client = NotebookClient(again, km=kernel, timeout=300)
    try:
        client.execute()
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
    del again.cells[0]
    assert printed(again) == printed(committed)
