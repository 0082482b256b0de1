"""A stamp changes with everything that a result depends on, and with nothing else."""

from __future__ import annotations

import ast
import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ebrank.kernels import provenance
from ebrank.kernels.provenance import module_stamp, package_stamp
from ebrank.lab.data.dataset import Dataset
from ebrank.lab.simulation import stamps
from ebrank.lab.simulation.stamps import fingerprint, lasting_stamp, stamp
from tests.importing import Folder, folder
from tests.lab.simulation.tiny import tiny

__all__ = ["folder"]

Write = Callable[..., None]
RANKER = """
from dataclasses import dataclass
from ebrank.lab.rankers.base import Ranker, param
{imports}
@dataclass(frozen=True)
class Mine({base}):
    name, help, settings = "mine", "A test's.", ("none",)
    size: int = param(1, "a size")
    def learner(self, trial):
        {inside}
"""


def ranker_text(imports: str = "", base: str = "Ranker", inside: str = "return None") -> str:
    return RANKER.format(imports=imports, base=base, inside=inside)


# --- ebrank itself -------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write files of a package that stands for ebrank."""
    monkeypatch.setattr(provenance, "ROOT", tmp_path)

    def write(**texts: str) -> None:
        for name, text in texts.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        forget()

    def forget() -> None:
        for cached in (package_stamp, provenance._own_stamp, provenance._own_file):
            cached.cache_clear()

    yield write
    forget()


def test_the_package_stamp_is_of_what_decides_a_trial(package: Write) -> None:
    seen = []
    decisive = (name.removesuffix(".py").replace("/", "__") for name in provenance.DECISIVE)
    others = ("a", "lab__rankers__b", "new__folder__c", *decisive)
    for name in ("service__app", "addons__logs__sql", *others):
        package(**{name: "# edited"})
        seen.append(package_stamp())
    assert len(set(seen)) == 1 + len(others)
    assert seen[0] == seen[1]


def test_the_files_of_addons_that_decide_a_trial_are_there() -> None:
    assert all((provenance.ROOT / name).is_file() for name in provenance.DECISIVE)


def test_compiled_code_depends_on_what_its_module_imports_and_no_more(package: Write) -> None:
    texts = {
        "mine": "from ebrank import first\ndef f():\n    from ebrank.pack.second import (\n x,\n)",
        "first": "import json",
        "pack__second": "from ebrank.third import y",
        "third": "y = 1",
        "other": "",
    }
    package(**texts)
    before = module_stamp("ebrank.mine")
    assert module_stamp("ebrank.mine", "ebrank.other") != before
    package(other="# edited")
    assert module_stamp("ebrank.mine") == before
    for name in ("mine", "first", "pack__second", "third"):
        package(**{name: texts[name] + "\n# edited"})
        assert module_stamp("ebrank.mine") != before
        package(**{name: texts[name]})


@pytest.mark.slow
def test_no_import_of_our_own_is_overlooked() -> None:
    """The pattern finds whatever the parser does."""
    for path in provenance.ROOT.rglob("*.py"):
        expected = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ebrank")
            for alias in node.names
            if alias.name != "*"
        }
        assert expected <= provenance._imports(path.read_bytes(), "ebrank")


@pytest.mark.parametrize("library", ["scipy", "numba", "lightgbm"])
def test_another_version_of_a_library_that_computes_is_another_package(
    library: str, monkeypatch: pytest.MonkeyPatch, package: Write
) -> None:
    installed, compiled = metadata.version, module_stamp("ebrank.mine")
    before = stamps.versions()
    monkeypatch.setattr(
        metadata, "version", lambda name: "0.0.1" if name == library else installed(name)
    )
    package()
    after = stamps.versions()
    assert {name for name in after if after[name] != before[name]} == {library, "source"}
    assert module_stamp("ebrank.mine") != compiled


def test_a_new_python_is_another_package_and_a_bug_fix_of_it_is_not(
    monkeypatch: pytest.MonkeyPatch, package: Write
) -> None:
    seen = []
    for version in (("3", "12", "1"), ("3", "12", "9"), ("3", "13", "1")):
        monkeypatch.setattr("platform.python_version_tuple", lambda version=version: version)
        package()
        seen.append(package_stamp())
    assert seen[0] == seen[1] != seen[2]


# --- plug-ins ------------------------------------------------------------------------------------

TEXTS = {
    "mine": ranker_text("from base import Base\nfrom pack import near", "Base", "import within"),
    "base": "from ebrank.lab.rankers.base import Ranker\nimport helper\nclass Base(Ranker): ...",
    "helper": "from constants import PI\nBY_NAME = 'named:score'",
    "constants": "PI = 3",
    "within": "import mine",
    "named": "def score(a):\n    return a",
    "pack/__init__": "",
    "pack/near": "from .far import thing\nimport numpy, json",
    "pack/far": "thing = 1",
    "other": "nobody = 'imports it'",
    "broken": "def f(:",
}


@pytest.mark.parametrize("edited", [*TEXTS])
def test_an_edit_to_any_file_behind_a_ranker_is_another_stamp(folder: Folder, edited: str) -> None:
    folder.write(TEXTS)
    ranker = folder.load("mine").Mine()
    before = lasting_stamp(ranker)
    assert before is not None
    folder.write({edited: TEXTS[edited] + "\n# edited"})
    assert (stamp(ranker) == before) == (edited in ("other", "broken"))


@pytest.mark.parametrize(
    "text",
    [
        "import json; import pack.far",
        "import pack.far; import json",
        "import pack.far# without a blank",
        "import json, \\\n    pack.far",
        "from pack import \\\n    far",
        "from pack import(far)",
        "from pack import (\n    near,  # (as before)\n    far,\n)",
        "if True: import pack.far",
        "\ufeffimport pack.far",
        "# -*- coding: latin-1 -*-\n# caf\N{LATIN SMALL LETTER E WITH ACUTE}\nimport pack.far",
    ],
)
def test_imports_count_however_they_are_written(folder: Folder, text: str) -> None:
    folder.write({"pack/__init__": "", "pack/near": "", "pack/far": ""})
    encoding = "latin-1" if "latin-1" in text else "utf8"
    (folder.path / "mine.py").write_bytes(f"{text}\nclass Mine: ...".encode(encoding))
    mine = folder.load("mine").Mine()
    before = lasting_stamp(mine)
    assert before is not None
    folder.write({"pack/far": "# edited"})
    assert lasting_stamp(mine) != before


def test_state_counts(folder: Folder) -> None:
    folder.write({"mine": ranker_text()})
    mine = folder.load("mine").Mine
    assert stamp(mine(2)) == stamp(mine(2)) != stamp(mine(3))


def test_of_an_installed_package_all_files_count(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {"pack/__init__": "", "pack/mine": ranker_text("import other"), "pack/near": ""}
    folder.write({**texts, "other": ""})
    monkeypatch.setattr(provenance, "_installed", lambda: [str(folder.path)])
    ranker = folder.load("pack.mine").Mine()
    before = lasting_stamp(ranker)
    folder.write({"other": "# edited"})
    assert stamp(ranker) == before
    folder.write({"pack/near": "# edited"})
    assert stamp(ranker) != before


ELSEWHERE = """
from ebrank.lab.simulation.stamps import lasting_stamp
import mine
print(lasting_stamp(mine.Mine()))
"""


@pytest.mark.slow
def test_another_process_finds_the_same_stamp_wherever_the_files_are(folder: Folder) -> None:
    folder.write(TEXTS)
    expected = stamp(folder.load("mine").Mine())
    moved = Folder(folder.path / "moved")
    moved.write(TEXTS)
    for path in (folder.path, moved.path):
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": "1"},
            cwd=path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split() == [expected]


def test_code_typed_in_or_opaque_never_has_the_same_stamp_twice() -> None:
    names: dict[str, Any] = {"__name__": "typed_in"}
    exec(compile(ranker_text(), "<typed in>", "exec", dont_inherit=True), names)
    for thing in (names["Mine"](), threading.Lock(), lambda: 1):
        assert lasting_stamp(thing) is None
        assert stamp(thing) != stamp(thing)


# --- data ----------------------------------------------------------------------------------------


def test_the_fingerprint_is_of_the_content() -> None:
    dataset: Dataset = tiny()
    usual = fingerprint(dataset)
    assert fingerprint(dataclasses.replace(dataset, name="other")) == usual
    assert fingerprint(dataclasses.replace(dataset, features=dataset.features.copy())) == usual
    seen = {usual, fingerprint(dataclasses.replace(dataset, max_label=dataset.max_label + 1))}
    for name in ("features", "labels", "query_splits", "baseline", "feature_ids"):
        other = getattr(dataset, name).copy()
        other.flat[-1] += -1 if name == "query_splits" else 1
        seen.add(fingerprint(dataclasses.replace(dataset, **{name: other})))
    assert len(seen) == 7
