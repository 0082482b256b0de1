"""Build the documentation site, without a network: `python tools/docs.py [FOLDER]`.

Pages are copied, and generated ones added: the command line's page is what `--help` prints, the
HTTP page what OpenAPI says, so neither can be out of date. Notebooks become pages, with what they
printed. Figures get a version for dark pages. Links to files beside `docs/`, which the site does
not have, become plain text. Zensical then builds all of it, and fails on a link that leads nowhere.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import nbformat

from ebrank.cli import root
from ebrank.paper.report.figures import INK, LOOKS
from ebrank.service.http.openapi import document

PROJECT = Path(__file__).parents[1]
ICON = PROJECT / "src" / "ebrank" / "service" / "dashboard" / "icon.svg"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)]*)\)")
FIGURE = re.compile(r"!\[([^\]]*)\]\(([^)]*)\.svg\)")
DOCTEST = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
PAPER = "#e3e5e8"
"""The color of texts and axes on dark pages."""
TABLES = ("beyond", "beyond-shared", "opinions", "table2", "waiting")
"""The tables of results that pages link to; the others are in the ledgers."""
WIDTH = 100


def main() -> None:
    """Build the site into a folder, `site` by default."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT / "site").resolve()
    with tempfile.TemporaryDirectory() as folder:
        write_pages(Path(folder) / "docs")
        shutil.copy(PROJECT / "mkdocs.yml", folder)
        build = (sys.executable, "-m", "zensical", "build", "--strict")
        done = subprocess.run(build, check=False, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(Path(folder) / "site", site)


def write_pages(folder: Path) -> None:
    """Write all pages: those of `docs/`, and the generated ones."""
    shutil.copytree(PROJECT / "docs", folder)
    shutil.copy(ICON, folder / "images" / "logo.svg")
    for table in folder.glob("results/*/tables/*.md"):
        if table.stem not in TABLES:
            table.unlink()
    pages = {
        "reference/command-line.md": command_line_page(),
        "reference/http.md": http_page(),
    }
    for notebook in sorted(folder.glob("notebooks/*.ipynb")):
        pages |= notebook_page(notebook)
    for path, text in pages.items():
        (folder / path).write_text(text, encoding="utf-8")
    for figure in folder.rglob("*.svg"):
        light = figure.read_text(encoding="utf-8")
        figure.with_stem(f"{figure.stem}-dark").write_text(darkened(light), encoding="utf-8")
    for page in folder.rglob("*.md"):
        depth = len(page.relative_to(folder).parts) - 1
        text = inside(page.read_text(encoding="utf-8"), depth)
        page.write_text(adapted(text), encoding="utf-8")


def adapted(markdown: str) -> str:
    """Return a page with figures for light and dark, and prompts that copying leaves out.

    Python-Markdown, unlike GitHub, takes the backslash of an escaped < for itself.

    >>> adapted("![A curve](time.svg)")
    '![A curve](time.svg#only-light)![A curve](time-dark.svg#only-dark)'
    >>> adapted("p \\\\< .05")
    'p &lt; .05'
    """
    both = r"![\1](\2.svg#only-light)![\1](\2-dark.svg#only-dark)"
    return DOCTEST.sub("```pycon\n", FIGURE.sub(both, markdown)).replace(r"\<", "&lt;")


def darkened(svg: str) -> str:
    """Return a figure for dark pages: on no ground, with the series' colors for dark."""
    for look in LOOKS.values():
        svg = svg.replace(look.light, look.dark)
    for ink in (INK, "#000000"):
        svg = svg.replace(ink, PAPER)
    svg = svg.replace("fill: #ffffff", "fill: none")
    return svg.replace("</style>", f"svg{{fill: {PAPER}}}</style>", 1)  # letters may be shapes


def inside(markdown: str, depth: int) -> str:
    """Return a page that is so many folders deep, with links out of `docs/` as plain text.

    >>> inside("[how fast](../benchmarks/README.md), [how](../index.md)", 0)
    'how fast, how'
    >>> inside("[how](../index.md)", 1)
    '[how](../index.md)'
    """
    return LINK.sub(lambda link: link[1] if link[2].count("../") > depth else link[0], markdown)


def notebook_page(path: Path) -> dict[str, str]:
    """Return a notebook as a page, and its pictures, by their places in the site."""
    files, lines = dict[str, str](), list[str]()
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "markdown":
            lines += [cell.source.replace(".ipynb)", ".md)"), ""]
            continue
        lines += ["```python", cell.source, "```", ""]
        for shown in cell.outputs:
            data = shown.get("data", {})
            if "image/svg+xml" in data:
                picture = f"{path.stem}-{number}.svg"
                files[f"notebooks/{picture}"] = data["image/svg+xml"]
                lines += [f"![What the code above draws]({picture})", ""]
            else:
                lines += ["```text", (shown.get("text") or data["text/plain"]).rstrip(), "```", ""]
    lines += [f"[Download the notebook]({path.name})."]
    return {**files, f"notebooks/{path.stem}.md": "\n".join(lines)}


def command_line_page() -> str:
    """Return the help of every command."""
    lines = ["# Command line", "", "What `ebrank COMMAND --help` prints.", ""]
    for words, command in commands(root, ("ebrank",)):
        context = click.Context(command, info_name=" ".join(words), max_content_width=WIDTH)
        lines += [f"## {' '.join(words)}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)


def commands(
    command: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and all below it, each with the words that call it."""
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None:
                yield from commands(below, (*words, name))


def http_page() -> str:
    """Return every route and every field of requests and answers."""
    described = document()
    lines = [
        "# HTTP",
        "",
        "Every route of the service. A server describes itself at `/openapi.json`. "
        "[The walk with curl](../http.md) shows them at work.",
        "",
    ]
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            lines += [f"## {method.upper()} {path}", "", route["description"], ""]
            if route.get("x-scopes"):
                lines += [f"Scope: {' or '.join(route['x-scopes'])}.", ""]
            bodies = {"Request": route.get("requestBody"), "Answer": route["responses"]["200"]}
            for what, body in bodies.items():
                for media, content in (body or {}).get("content", {}).items():
                    lines += [f"{what}: {kind_of(content.get('schema'))}, as `{media}`.", ""]
    lines += ["## Fields", ""]
    for name, schema in described["components"]["schemas"].items():
        lines += fields_of(name, schema)
    return "\n".join(lines)


def fields_of(name: str, schema: dict[str, Any]) -> list[str]:
    """Return a table of an object's fields."""
    properties = schema.get("properties")
    if not properties:
        return []
    required = set(schema.get("required", ()))
    lines = [f"### {name}", "", schema.get("description", ""), ""]
    lines += ["| field | type | | |", "|---|---|---|---|"]
    for field, about in properties.items():
        must = "required" if field in required else ""
        text = str(about.get("description", "")).replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{field}` | {kind_of(about)} | {must} | {text} |")
    return [*lines, ""]


def kind_of(about: Any) -> str:  # noqa: ANN401 (JSON)
    """Return the type of a field in a word or two."""
    if not isinstance(about, dict):
        return "anything"
    if "$ref" in about:
        name = str(about["$ref"]).rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in about:
        return " or ".join(kind_of(option) for option in about["anyOf"])
    if about.get("type") == "array":
        return f"list of {kind_of(about.get('items', {}))}"
    kind = about.get("type", "anything")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


if __name__ == "__main__":
    main()
