"""`ebrank store`: make, migrate and copy stores in a database, and see who serves them."""

from __future__ import annotations

import click

from ebrank.cli.lazy import LazyGroup, examples

VERBS = {
    "copy": "Copy a store to a folder, or to a database, where there is none.",
    "init": "Make an empty store, if there is none.",
    "migrate": "Bring a store up to the version that this ebrank reads.",
    "servers": "Print the servers of a store, as each announced itself a few seconds ago.",
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
    """Make, copy or upgrade a store, or see who serves it."""
