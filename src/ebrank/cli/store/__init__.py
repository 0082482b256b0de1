"""`ebrank store`: create, migrate and copy stores, and see which servers use them."""

from __future__ import annotations

import click

from ebrank.cli.lazy import LazyGroup, examples

VERBS = {
    "copy": "Copy a store to a new folder or database.",
    "init": "Create an empty store, unless it exists.",
    "migrate": "Migrate a store to the current version.",
    "servers": "List the servers that share a store.",
}


@click.command(
    "store",
    cls=LazyGroup,
    package=__name__,
    verbs=VERBS,
    epilog=examples(
        "ebrank store init postgresql://owner@db.example/shop",
        "ebrank store copy ebrank-store postgresql://owner@db.example/shop",
    ),
)
def command() -> None:
    """Create, copy or migrate a store, or list its servers."""
