"""`ebrank rankers`: which rankers there are, as they declare themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ebrank.cli import console
from ebrank.cli.options import AS_JSON
from ebrank.cli.verbs import arg, verb

if TYPE_CHECKING:
    from ebrank.lab.rankers.base import Ranker

SETTINGS = {"none": "W/o-Behav", "concate": "Concate", "non-concate": "non-Concate"}
"""The paper's names for the feature settings."""


@verb()
def rankers(name: str | None = arg("", None), as_json: bool = AS_JSON) -> None:
    """List the rankers, or describe one.

    With NAME, shows that ranker's parameters and their defaults. Other commands take a ranker as
    NAME:PARAM=VALUE,PARAM=VALUE, and your own as MODULE:CLASS:PARAM=VALUE.

    Examples:
        ebrank rankers
        ebrank rankers ebrank
        ebrank rankers --json
    """
    from ebrank.lab.rankers import registry

    if name is not None:
        ranker = about(registry.parse(name))
        if as_json:
            console.print_json(ranker)
        else:
            print_one(ranker)
        return
    rankers = [about(ranker()) for ranker in registry.built_in().values()]
    if as_json:
        console.print_json({"rankers": rankers})
        return
    rows = [(ranker["name"], in_words(ranker["settings"]), ranker["help"]) for ranker in rankers]
    console.print_rows(("name", "features", "what it does"), rows)
    click.echo("Parameters of a ranker: ebrank rankers NAME")


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


def print_one(ranker: dict[str, Any]) -> None:
    """Print a ranker and its parameters."""
    from ebrank.parameters import typed

    click.secho(ranker["name"], bold=True)
    click.echo(console.wrapped(ranker["help"]))
    click.echo(f"Features: {in_words(ranker['settings'])}")
    if not ranker["parameters"]:
        click.echo("Parameters: none")
        return
    click.echo()
    rows = [
        (param["name"], typed(param["default"]), param["takes"], param["help"])
        for param in ranker["parameters"]
    ]
    console.print_rows(("parameter", "default", "takes", "what it is"), rows)


def in_words(settings: list[str]) -> str:
    """Return feature settings by the paper's names."""
    return ", ".join(SETTINGS[setting] for setting in settings)
