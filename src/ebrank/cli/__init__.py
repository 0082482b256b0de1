"""The command line: `ebrank VERB`, one file per verb.

A verb is a module of this package with a click command called `command`, and a line in `VERBS`. It
is imported only when called, and imports what is heavy inside its functions, so that
`ebrank --help` answers at once.
"""

from __future__ import annotations

import os
import sys

import click

from ebrank import __version__
from ebrank.cli.lazy import RootGroup, examples

VERBS = {
    "aggregate": "Count what logs of any size say of each query and item.",
    "backup": "Copy a store to a file or a folder while it is served.",
    "check": "Find all that is wrong with a store.",
    "compare": "Compare rankers, and say which differences are not luck.",
    "data": "List, describe and check datasets.",
    "delete": "Delete an item, a query or a user's name, for good.",
    "examine": "Learn from a store how far down users look.",
    "export": "Write a store's items, log and models as Parquet files.",
    "features": "Show the features of a store's items; add, remove and rename them.",
    "import": "Make a new store of an export, or of what `ebrank aggregate` wrote.",
    "items": "Fill the catalog of items, whose features all queries share.",
    "rankers": "List the rankers, or describe one.",
    "repair": "Set a store right, or say what that would change.",
    "replay": "Prove that a store's counters are what its log adds up to.",
    "report": "Write the report of a reproduction again, from its results.",
    "reproduce": "Reproduce the paper: all its tables and figures, and more.",
    "serve": "Serve rankings over HTTP and learn from what users do.",
    "simulate": "Run rankers on simulated users and measure them.",
    "store": "Make, copy or upgrade a store, or see who serves it.",
    "tune": "Choose a ranker's parameters on validation queries.",
}


@click.command(
    cls=RootGroup,
    package=__name__,
    verbs=VERBS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "ebrank data list",
        "ebrank data check ~/datasets/MQ2008/Fold1",
        "ebrank simulate --dataset mq2007-like --ranker ebrank",
        "ebrank reproduce --scale 0.1 --trials 2",
        "ebrank serve --demo",
    ),
)
@click.version_option(__version__, prog_name="ebrank", message="%(prog)s %(version)s")
def root() -> None:
    """Rank with user behavior without burying what is new."""


def main() -> None:
    """Run the command line and exit: 0 good, 2 bad input, 130 interrupted."""
    sys.path.append("")  # rankers may lie in the working folder; last, so that it hides nothing
    try:
        code = root.main(prog_name="ebrank", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except click.Abort:
        code = 130
    except BrokenPipeError:
        # The reader has left (`ebrank ... | head`): nothing to say, and nowhere to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
