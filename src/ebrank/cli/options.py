"""Options that several verbs share, so that their names and help are the same everywhere."""

from __future__ import annotations

from typing import Any

from ebrank.cli.verbs import arg, opt

AS_JSON: Any = opt(False, "Print one JSON document for scripts.", "--json")
TOKEN: Any = opt(
    None, "Token, if the server needs one; default: EBRANK_TOKEN.", "TOKEN", envvar="EBRANK_TOKEN"
)
SETTINGS: Any = opt(None, "Settings of the service, in TOML.", "FILE")
FEATURES: Any = opt(None, "Features of items, for evidence.", "FILE")
STORE: Any = arg("STORE|URL")
"""A store that no server uses, or the URL of its server."""
HISTORY: Any = arg("STORE|EXPORT|EVIDENCE")
"""Where verbs find what users did."""
