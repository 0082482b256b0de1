"""The front door in real processes: what it imports, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import ebrank
from ebrank.cli import GROUPS, VERBS, root
from ebrank.cli.lazy import LazyGroup

HEAVY = ("numpy", "numba", "scipy", "rich", "sklearn", "matplotlib", "jinja2")


def run(*arguments: str, code: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `ebrank` with these arguments, or a piece of Python, as a user would."""
    start = ["-m", "ebrank"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "COLUMNS": "80"},
    )


def test_help_and_version_import_nothing_heavy() -> None:
    code = f"""
import sys
from ebrank.cli import root
for arguments in (["--help"], ["--version"], ["data", "--help"], ["data", "check", "--help"]):
    assert root.main(arguments, prog_name="ebrank", standalone_mode=False) == 0
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = run(code=code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_listing_datasets_compiles_nothing() -> None:
    code = """
import sys
from ebrank.cli import root
root.main(["data", "list"], standalone_mode=False)
print([name for name in ("numba", "scipy") if name in sys.modules])
"""
    assert run(code=code).stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"ebrank {ebrank.__version__}\n")


def test_an_unknown_command_is_a_usage_error() -> None:
    done = run("dance")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("Error: No such command 'dance'.\n")


@pytest.mark.parametrize(
    ("words", "meant"),
    [(("reprodce",), "reproduce"), (("Serve",), "serve"), (("data", "lst"), "list")],
)
def test_a_mistyped_command_is_answered_with_a_suggestion(
    words: tuple[str, ...], meant: str
) -> None:
    done = CliRunner().invoke(root, words, prog_name="ebrank")
    assert done.exit_code == 2
    assert done.stderr.endswith(f"No such command '{words[-1]}'. Did you mean {meant}?\n")


def test_a_users_mistake_is_one_line_without_traceback(tmp_path: Path) -> None:
    done = run("data", "check", str(tmp_path / "absent"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path / 'absent'}: no such dataset or folder. ")
    assert done.stderr.count("\n") == 1


VERB_THAT = """
import sys, types, click
import ebrank.cli
def verb(): {body}
module = types.SimpleNamespace(command=click.Command("data", callback=verb))
sys.modules["ebrank.cli.data"] = module
sys.argv = ["ebrank", "data"]
ebrank.cli.main()
"""


def test_an_interrupt_exits_quietly_with_130() -> None:
    done = run(code=VERB_THAT.format(body="raise KeyboardInterrupt"))
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")


def test_trouble_with_a_file_is_one_line() -> None:
    done = run(code=VERB_THAT.format(body="open('/no/such/file')"))
    assert (done.returncode, done.stderr) == (
        2,
        "error: /no/such/file: no such file or directory\n",
    )


def test_too_little_memory_is_one_line() -> None:
    done = run(code=VERB_THAT.format(body="raise MemoryError"))
    assert (done.returncode, done.stderr) == (
        2,
        "error: out of memory; try less at a time\n",
    )


def test_a_warning_is_one_line() -> None:
    body = "import warnings; warnings.warn('odd counts')"
    done = run(code=VERB_THAT.format(body=body))
    assert (done.returncode, done.stderr) == (0, "warning: odd counts\n")


def test_a_bug_is_not_hidden() -> None:
    done = run(code=VERB_THAT.format(body="1 / 0"))
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("amount", [1, 100_000])
def test_a_reader_that_leaves_is_no_trouble(amount: int) -> None:
    code = VERB_THAT.format(body=f"[print('line') for _ in range({amount})]")
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=buffered,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 1


def commands(group: click.Command, *path: str) -> list[tuple[str, ...]]:
    """Return the words that call each command, groups included."""
    if not isinstance(group, LazyGroup):
        return [path]
    context = click.Context(group)
    inner = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    return [path, *(words for name, one in inner if one for words in commands(one, *path, name))]


@pytest.mark.parametrize("words", commands(root), ids=" ".join)
def test_every_help_has_examples_and_fits(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(root, [*words, "--help"], prog_name="ebrank", terminal_width=80)
    assert done.exit_code == 0
    _, _, examples = done.stdout.partition("Examples:\n")
    lines = [line.strip() for line in examples.splitlines()]
    assert lines, "no examples"
    assert all(line.startswith(" ".join(("ebrank", *words))) for line in lines)
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("words", commands(root), ids=" ".join)
def test_short_help_is_the_commands_own(words: tuple[str, ...]) -> None:
    group: click.Command | None = root
    for word in words:
        assert isinstance(group, LazyGroup)
        line = group.verbs[word]
        group = group.get_command(click.Context(group), word)
        assert group is not None
        assert (group.help or "").splitlines()[0] == line


def test_every_verb_is_listed() -> None:
    folder = Path(ebrank.__file__).parent / "cli"
    helpers = {"__init__", "console", "lazy", "options"}
    modules = {path.stem for path in folder.iterdir() if path.stem[0] != "_"} - helpers
    assert {name.rstrip("_") for name in modules} == set(VERBS)  # import_.py is `import`


def test_help_is_grouped_by_what_one_wants_to_do() -> None:
    text = run("--help").stdout
    headings = [f"\n{heading}:\n" for heading in GROUPS]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    for heading, verbs in GROUPS.items():
        own = text[text.index(f"\n{heading}:\n") :].partition("\n\n")[0]
        assert all(f"\n  {verb} " in own for verb in verbs)
