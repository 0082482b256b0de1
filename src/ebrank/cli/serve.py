"""`ebrank serve`: the service in one process, with its store in a folder."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ebrank.cli.verbs import opt, verb
from ebrank.environment.extras import import_extra

if TYPE_CHECKING:
    from ebrank.service.settings import Settings

Flags: TypeAlias = dict[str, dict[str, Any]]


@verb()
def serve(
    host: str | None = opt(None, "Address to listen on; default 127.0.0.1.", "ADDRESS"),
    port: int | None = opt(None, "Port; default 8000; 0 picks a free one.", "N"),
    store: str | None = opt(None, "Folder or URL of the store; default ebrank-store.", "URL"),
    config: str | None = opt(None, "Settings in TOML; see docs/service.md.", "FILE"),
    check: bool = opt(False, "Print the effective settings and exit."),
    demo: bool = opt(False, "Serve simulated users from a temporary store."),
    new_token: str | None = opt(None, "Create a token, print it once, and exit.", "NAME"),
    scopes: str | None = opt(
        None, "What the token allows: any of rank,feedback,admin; default rank,feedback.", "LIST"
    ),
) -> None:
    """Serve rankings over HTTP and learn from what users do.

    Everything is stored in one folder. Settings come from the file; environment variables such as
    EBRANK_SERVE_RANKING_K override it, and these options override both. On a loopback address,
    tokens are optional; on any other address, they are required.

    Ctrl-C or SIGTERM finishes requests in progress and stops. Changes to the tokens in the file
    take effect within two seconds.

    Examples:
        ebrank serve
        ebrank serve --demo
        ebrank serve --port 9000 --store /var/lib/ebrank --config ebrank.toml
        ebrank serve --config ebrank.toml --check
        ebrank serve --new-token shop --scopes rank,feedback
    """
    if scopes is not None and new_token is None:
        raise click.UsageError("--scopes works only with --new-token NAME.")
    if demo and store is not None:
        raise click.UsageError("--demo uses a temporary store: leave out --store.")
    for module in ("cachetools", "httptools", "uvicorn"):
        import_extra(module, extra="service", purpose="to serve")
    if new_token is not None:
        print_token(new_token, (scopes or "rank,feedback").split(","))
        return
    flags: Flags = {"server": {"host": host, "port": port}, "store": {"url": store}}
    settings = read_settings(config, flags)
    if check:
        print_settings(settings)
        return
    if demo:
        serve_demo(settings)
        return
    from ebrank.service.ops import server

    server.run(
        settings,
        announce=lambda address, base: print_address(address, base, settings.store.url),
        file=None
        if config is None
        else server.SettingsFile(Path(config), lambda: read_settings(config, flags)),
    )


def serve_demo(settings: Settings) -> None:
    """Serve simulated users until a signal comes; leave nothing behind."""
    from ebrank.addons import demo
    from ebrank.service.ops import server

    with tempfile.TemporaryDirectory(prefix="ebrank-demo-") as folder:
        server.run(
            demo.demo_settings(settings, folder),
            announce=lambda address, _: click.echo(demo.guide(address)),
            companion=demo.users,
        )


def read_settings(config: str | None, flags: Flags) -> Settings:
    """Return the effective settings, checked as a whole; a flag that is None was not given."""
    from ebrank.service.ops import configuration, server

    given = {
        section: {key: value for key, value in table.items() if value is not None}
        for section, table in flags.items()
    }
    settings = configuration.read(config, environment=os.environ, flags=given)
    server.check(settings)
    return settings


def print_address(address: str, database: str, store: str) -> None:
    """Say where everything is."""
    from ebrank.service.store.urls import without_password

    click.echo(
        f"EBRank serves at {address} and keeps everything in {without_password(store)}\n"
        f"  dashboard      {address}/\n"
        f"  documentation  {address}/docs\n"
        f"  database       {database}\n"
        "Ctrl-C stops it."
    )


def print_token(name: str, scopes: list[str]) -> None:
    """Make a token, and print it with the lines to add to the settings file."""
    from ebrank.service.http.admission import new_token

    secret, token = new_token(name, [scope.strip() for scope in scopes])
    click.echo(
        f"The token (it is not stored and cannot be shown again):\n\n  {secret}\n\n"
        f"Add this to the --config file:\n\n  [tokens.{json.dumps(token.name)}]\n"
        f"  sha256 = {json.dumps(token.sha256)}\n  scopes = {json.dumps(list(token.scopes))}"
    )


def print_settings(settings: Settings) -> None:
    """Print the settings as a file could hold them, tokens by name and scopes only."""
    from ebrank.service.ops.configuration import effective

    for section, table in effective(settings).items():
        click.echo(f"[{section}]")
        for key, value in table.items():
            note = "# " if section == "tokens" else ""
            shown = json.dumps("off" if value is None else value, ensure_ascii=False)
            click.echo(f"{note}{key} = {shown}")
        click.echo()
