"""`ebrank data`: which datasets there are, where they are, and whether they are sound."""

from __future__ import annotations

import click

from ebrank.cli.lazy import LazyGroup, examples

VERBS = {
    "list": "List the known datasets and where they are.",
    "info": "Describe a dataset and how to get it.",
    "check": "Parse a dataset and count its queries, rows, features and labels.",
}


@click.command(
    "data",
    cls=LazyGroup,
    package=__name__,
    verbs=VERBS,
    epilog=examples(
        "ebrank data list",
        "ebrank data info MQ2007",
        "ebrank data check ~/datasets/MQ2008/Fold1",
    ),
)
def command() -> None:
    """List, describe and check datasets."""
