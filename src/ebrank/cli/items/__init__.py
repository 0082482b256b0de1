"""`ebrank items`: the catalog of items, whose features all queries share."""

from __future__ import annotations

import click

from ebrank.cli.lazy import LazyGroup, examples

VERBS = {
    "list": "List the items in the catalog.",
    "put": "Add or update items in the catalog from a file.",
    "withdraw": "Withdraw items from the lists of all queries.",
}


@click.command(
    "items",
    cls=LazyGroup,
    package=__name__,
    verbs=VERBS,
    epilog=examples(
        "ebrank items put http://127.0.0.1:8000 catalog.ndjson",
        "ebrank items put ebrank-store catalog.csv",
        "ebrank items list ebrank-store --limit 20",
        "ebrank items withdraw http://127.0.0.1:8000 sencha",
    ),
)
def command() -> None:
    """Add, list and withdraw the items that all queries share."""
