"""What the documentation site needs beyond its pages: generated ones, and links that hold.

The command line's page is what `--help` prints, the HTTP page what OpenAPI says, so neither can be
out of date. Notebooks become pages, with what they printed. Links to files beside `docs/`, which
the site does not have, become plain text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ebrank.cli import root
from ebrank.service.http.openapi import document
from ebrank.service.http.routes import API

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)]*)\)")
WIDTH = 100


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {
        "reference/command-line.md": command_line_page(),
        "reference/http.md": http_page(),
    }
    for notebook in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        pages |= notebook_page(notebook)
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


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


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links that lead out of `docs/` into plain text."""

    def kept(link: re.Match[str]) -> str:
        depth = page.file.src_uri.count("/")
        outside = link[2].count("../") > depth
        return link[1] if outside else link[0]

    return LINK.sub(kept, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Name the search for screen readers, which the theme forgets."""
    search = '<div class="md-search" data-md-component="search" role="dialog"'
    return output.replace(search, f'{search} aria-label="Search"')


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
    described = document(API)
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
