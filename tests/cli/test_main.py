"""The front door in real processes: what it imports, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

import ebrank
from ebrank.cli import GROUPS, VERBS, main, root

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


def test_help_imports_nothing_heavy_and_lists_compile_nothing() -> None:
    code = f"""
import sys
from ebrank.cli import root
verbs = ([], ["data"], ["data", "check"], ["simulate"], ["tune"], ["rankers"])
for arguments in (["--version"], *([*verb, "--help"] for verb in verbs)):
    assert root.main(arguments, prog_name="ebrank", standalone_mode=False) == 0
print([name for name in {HEAVY} if name in sys.modules])
for verb in (["data", "list"], ["rankers"]):
    root.main(verb, prog_name="ebrank", standalone_mode=False)
print([name for name in ("numba", "scipy") if name in sys.modules])
"""
    done = run(code=code)
    assert done.returncode == 0, done.stderr
    assert f"ebrank {ebrank.__version__}" in done.stdout
    lines = done.stdout.splitlines()
    assert (lines.count("[]"), lines[-1]) == (2, "[]")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("dance",), ""),
        (("reprodce",), " Did you mean reproduce?"),
        (("Serve",), " Did you mean serve?"),
        (("data", "lst"), " Did you mean list?"),
    ],
)
def test_an_unknown_command_is_answered_with_a_suggestion(
    words: tuple[str, ...], meant: str
) -> None:
    done = CliRunner().invoke(root, words, prog_name="ebrank")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(f"No such command '{words[-1]}'.{meant}\n")


def test_a_users_mistake_is_one_line_without_traceback(tmp_path: Path) -> None:
    done = run("data", "check", str(tmp_path / "absent"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {tmp_path / 'absent'}: no such dataset or folder. ")
    assert done.stderr.count("\n") == 1


VERB_THAT = """
import sys, types, click
import ebrank.cli
def verb(): {body}
module = types.SimpleNamespace(data=click.Command("data", callback=verb))
sys.modules["ebrank.cli.data"] = module
sys.argv = ["ebrank", "data"]
ebrank.cli.main()
"""


def interrupted() -> None:
    raise KeyboardInterrupt


def out_of_memory() -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("verb", "code", "said"),
    [
        (interrupted, 130, ""),
        (
            lambda: Path("/no/such/file").read_bytes(),
            2,
            "error: /no/such/file: no such file or directory",
        ),
        (out_of_memory, 2, "error: out of memory; try less at a time"),
        (lambda: warnings.warn("odd counts", stacklevel=1), 0, "warning: odd counts"),
    ],
)
def test_how_a_command_ends(
    verb: Callable[[], object],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = SimpleNamespace(data=click.Command("data", callback=verb))
    monkeypatch.setitem(sys.modules, "ebrank.cli.data", module)
    monkeypatch.setattr(sys, "argv", ["ebrank", "data"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    output = capsys.readouterr()
    assert (output.out, output.err.strip()) == ("", said)


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
    if not isinstance(group, click.Group):
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


def test_the_front_door_says_of_each_verb_what_its_own_help_says() -> None:
    own = {verb: root.get_command(click.Context(root), verb) for verb in VERBS}
    assert {
        verb: (command.help or "").partition("\n")[0] for verb, command in own.items() if command
    } == VERBS


def test_help_is_grouped_by_what_one_wants_to_do() -> None:
    text = CliRunner().invoke(root, ["--help"], prog_name="ebrank", terminal_width=80).stdout
    headings = [f"\n{heading}:\n" for heading in GROUPS]
    places = [text.index(heading) for heading in headings]
    assert places == sorted(places)
    for heading, verbs in GROUPS.items():
        own = text[text.index(f"\n{heading}:\n") :].partition("\n\n")[0]
        assert all(f"\n  {verb} " in own for verb in verbs)
