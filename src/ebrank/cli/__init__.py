"""The command line: `ebrank VERB`.

A verb is a function of a module of this package, which has its name unless `MODULES` says
otherwise, and a line in `GROUPS`. It is imported only when called, and its functions import heavy
packages themselves, so that `ebrank --help` answers at once.
"""

from __future__ import annotations

import errno
import importlib
import keyword
import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import click

from ebrank import __version__
from ebrank.cli import console
from ebrank.cli.verbs import Verbs, verbs
from ebrank.errors import EBRankError

GROUPS = {
    "Find out which ranker is best": {
        "reproduce": "Reproduce the paper: all its tables and figures, and more.",
        "report": "Rewrite the report of a reproduction from its results.",
        "simulate": "Run rankers on simulated users and measure them.",
        "compare": "Compare rankers and show which differences are significant.",
        "tune": "Choose a ranker's parameters on validation queries.",
        "rankers": "List the rankers, or describe one.",
        "data": "List and check datasets.",
    },
    "Serve rankings": {
        "serve": "Serve rankings over HTTP and learn from what users do.",
        "items": "Add, list and withdraw the items that all queries share.",
        "features": "Show the features of a store's items; add, remove, rename and require them.",
        "experiment": "Compare policies on live traffic.",
        "delete": "Permanently delete an item, a query or a user's name.",
        "retract": "Take back what lists and events of a time, user, query or token added.",
    },
    "Bring in what users did before": {
        "aggregate": "Turn logs of any size into evidence for each query and item.",
        "import": "Create a store from the output of `ebrank aggregate`.",
        "examine": "Estimate how far down users look.",
        "judgments": "Write how relevant each item is to its query, as users showed it.",
        "whatif": "Forecast what policies would do with the traffic of a log.",
    },
    "Look after a store": {
        "backup": "Back up a store to a file or a folder, even while it is in use.",
        "check": "Check a store for damage.",
        "export": "Write a store's items, log and models as Parquet files.",
        "replay": "Verify that a store's counters match its log.",
        "store": "Create, copy or migrate a store.",
    },
}
"""The verbs, grouped by what a user wants to do."""
VERBS = {verb: line for verbs in GROUPS.values() for verb, line in verbs.items()}
MODULES = {
    "contents": ("items", "features", "delete", "retract"),
    "history": ("aggregate", "import", "examine", "judgments", "whatif"),
    "reproduce": ("reproduce", "report"),
    "upkeep": ("backup", "check", "export", "replay", "store"),
}
"""The modules of several verbs; any other verb has one of its own name."""


class UserError(click.ClickException):
    """Bad input: one line on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:  # noqa: ANN401 (click's signature)
        """Print the message."""
        click.echo(f"error: {self.format_message()}", file=file, err=file is None)


class FrontDoor(Verbs):
    """All verbs, each imported when it is called; a user's mistakes end as one line."""

    def headings(self) -> Mapping[str, Mapping[str, str]]:
        """Return the lines of `GROUPS`, so that no verb is imported for them."""
        return GROUPS

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and return the verb."""
        if cmd_name not in VERBS:
            return None
        shared = (module for module, verbs in MODULES.items() if cmd_name in verbs)
        module = importlib.import_module(f"{__name__}.{next(shared, cmd_name)}")
        attribute = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(module, attribute)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; print errors of the input and of the file system as one line."""
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("default", RuntimeWarning)
            warnings.showwarning = _show_warning
            try:
                return super().invoke(ctx)
            except EBRankError as problem:
                raise UserError(str(problem)) from problem
            except OSError as problem:
                if problem.errno == errno.EPIPE:
                    raise
                reason = (problem.strerror or str(problem)).lower()
                where = f"{problem.filename}: " if problem.filename else ""
                raise UserError(where + reason) from problem
            except MemoryError as problem:
                raise UserError("out of memory; try less at a time") from problem


def _show_warning(
    message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    from ebrank.lab.data.published import DatasetNote

    say = console.note if issubclass(category, DatasetNote) else console.warn
    say(str(message))


@click.version_option(__version__, prog_name="ebrank", message="%(prog)s %(version)s")
@verbs(cls=FrontDoor, help_option_names=["-h", "--help"], max_content_width=100)
def root() -> None:
    """Rank with user behavior without burying what is new.

    Examples:
        ebrank data list
        ebrank data check ~/datasets/MQ2008/Fold1
        ebrank simulate --dataset mq2007-like --ranker ebrank
        ebrank reproduce --scale 0.1 --trials 2
        ebrank serve --demo
    """


def main() -> None:
    """Run the command line and exit: 0 success, 2 bad input, 130 interrupted."""
    sys.path.append("")  # rankers may be in the working folder; last, so that it hides nothing
    try:
        code = root.main(prog_name="ebrank", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except click.Abort:
        code = 130
    except BrokenPipeError:
        # The reader has closed the pipe (`ebrank ... | head`): there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
