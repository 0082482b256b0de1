"""The front door: what it imports, what its help says, and how commands end."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner

import ebrank
from ebrank.cli import GROUPS, VERBS, main, root

HEAVY = ("numpy", "numba", "scipy", "rich", "sklearn", "matplotlib", "jinja2", "httpx", "httptools")


def python(code: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


def commands(
    command: click.Command | None, *path: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield each command with the words that call it, groups included."""
    assert command is not None
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), *path, name)


def test_help_imports_nothing_heavy_and_lists_compile_nothing() -> None:
    code = f"""
import sys
from ebrank.cli import root
verbs = ([], ["data"], ["data", "check"], ["simulate"], ["tune"], ["rankers"], ["serve"])
for arguments in (["--version"], *([*verb, "--help"] for verb in verbs)):
    assert root.main(arguments, prog_name="ebrank", standalone_mode=False) == 0
print([name for name in {HEAVY} if name in sys.modules])
for verb in (["data", "list"], ["rankers"]):
    root.main(verb, prog_name="ebrank", standalone_mode=False)
print([name for name in ("numba", "scipy") if name in sys.modules])
"""
    done = python(code)
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


@pytest.mark.parametrize("words", [words for words, _ in commands(root)], ids=" ".join)
def test_every_help_has_examples_and_fits(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(root, [*words, "--help"], prog_name="ebrank", terminal_width=80)
    assert done.exit_code == 0
    _, _, examples = done.stdout.partition("Examples:\n")
    lines = [line.strip() for line in examples.splitlines()]
    assert lines, "no examples"
    assert all(line.startswith(" ".join(("ebrank", *words))) for line in lines)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_help_lists_every_verb_with_its_own_line_under_what_one_wants_to_do() -> None:
    lines = {words[0]: command.help for words, command in commands(root) if len(words) == 1}
    assert {verb: (text or "").partition("\n")[0] for verb, text in lines.items()} == VERBS
    text = CliRunner().invoke(root, ["--help"], prog_name="ebrank", terminal_width=80).stdout
    places = [text.index(f"\n{heading}:\n") for heading in GROUPS]
    assert places == sorted(places)
    for place, verbs in zip(places, GROUPS.values(), strict=True):
        own = text[place:].partition("\n\n")[0]
        assert all(f"\n  {verb} " in own for verb in verbs)


# --- how a command ends --------------------------------------------------------------------------


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


VERB_THAT = """
import sys, types, click
import ebrank.cli
def verb(): {body}
module = types.SimpleNamespace(data=click.Command("data", callback=verb))
sys.modules["ebrank.cli.data"] = module
sys.argv = ["ebrank", "data"]
ebrank.cli.main()
"""


def test_a_bug_is_not_hidden() -> None:
    done = python(VERB_THAT.format(body="1 / 0"))
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("amount", [1, 100_000])
def test_a_reader_that_leaves_is_no_trouble(amount: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code = VERB_THAT.format(body=f"[print('line') for _ in range({amount})]")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    words, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 1
