"""`ebrank items`: the catalog of items, whose features all queries share."""

from __future__ import annotations

import click

from ebrank.cli.lazy import LazyGroup, examples

VERBS = {
    "put": "Add or update items in the catalog from a file.",
}


@click.command(
    "items",
    cls=LazyGroup,
    package=__name__,
    verbs=VERBS,
    epilog=examples(
        "ebrank items put http://127.0.0.1:8000 catalog.ndjson",
        "ebrank items put ebrank-store catalog.csv",
    ),
)
def command() -> None:
    """Fill the catalog of items that all queries share."""
