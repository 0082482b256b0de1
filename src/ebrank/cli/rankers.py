"""`ebrank rankers`: which rankers there are, as they declare themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.options import json_option
from ebrank.cli.verbs import verb

if TYPE_CHECKING:
    from ebrank.rankers.base import Ranker

SETTINGS = {"none": "W/o-Behav", "concate": "Concate", "non-concate": "non-Concate"}
"""The paper's names for the feature settings."""


@verb()
@click.argument("name", required=False)
@json_option
def rankers(name: str | None, as_json: bool) -> None:
    """List the rankers, or describe one.

    With NAME, shows that ranker's parameters and their defaults. Other commands take a ranker as
    NAME:PARAM=VALUE,PARAM=VALUE, and your own as MODULE:CLASS:PARAM=VALUE.

    Examples:
        ebrank rankers
        ebrank rankers ebrank
        ebrank rankers --json
    """
    from ebrank.rankers import registry

    if name is None:
        rankers = [about(ranker()) for ranker in registry.known().values()]
        if as_json:
            console.print_json({"rankers": rankers, "installed": installed()})
        else:
            print_list(rankers, installed())
        return
    ranker = about(registry.parse(name))
    if as_json:
        console.print_json(ranker)
    else:
        print_one(ranker)


def about(ranker: Ranker) -> dict[str, Any]:
    """Return what a ranker declares."""
    return {
        "name": ranker.name,
        "help": ranker.help,
        "settings": list(ranker.settings),
        "parameters": [
            {
                "name": parameter.name,
                "default": parameter.default,
                "takes": parameter.domain,
                "help": parameter.help,
                "grid": list(parameter.grid),
            }
            for parameter in ranker.parameters()
        ],
    }


def installed() -> dict[str, str]:
    """Return the origin of each ranker in installed packages, by name, without importing it."""
    from ebrank.rankers import registry

    return {name: registry.origin(entry) for name, entry in registry.installed().items()}


def print_list(rankers: list[dict[str, Any]], installed: dict[str, str]) -> None:
    """Print a line for each ranker."""
    ours = [(ranker["name"], in_words(ranker["settings"]), ranker["help"]) for ranker in rankers]
    theirs = [(name, "", origin) for name, origin in installed.items()]
    console.print_table(("name", "features", "what it does"), ours + theirs)
    click.echo("Parameters of a ranker: ebrank rankers NAME")


def print_one(ranker: dict[str, Any]) -> None:
    """Print a ranker and its parameters."""
    facts = {
        "what it does": ranker["help"],
        "features": in_words(ranker["settings"]),
        "parameters": "" if ranker["parameters"] else "none",
    }
    console.print_facts(ranker["name"], {name: text for name, text in facts.items() if text})
    if ranker["parameters"]:
        from ebrank.parameters import typed

        click.echo()
        columns = ("parameter", "default", "takes", "what it is")
        rows = [
            (param["name"], typed(param["default"]), param["takes"], param["help"])
            for param in ranker["parameters"]
        ]
        console.print_table(columns, rows)


def in_words(settings: list[str]) -> str:
    """Return feature settings by the paper's names."""
    return ", ".join(SETTINGS[setting] for setting in settings)
