"""Words that ebrank does not use, found in its code, its documentation and its pages.

They are those of a narrator, not of the field: a log does not tell, a model does not hear, an item
earns nothing. `make lint` runs this; it prints each place and fails if there is one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

BANNED = re.compile(
    r"(?<![A-Za-z])(promise[sd]?|(?i:hears?|says? nothing|trusted with|believed|looked at|told"
    r"|earn(?:s|ed)?|the possible))(?![A-Za-z])"
)
WHERE = ("src", "docs", "README.md")
KINDS = (".py", ".md", ".html", ".js", ".css", ".ipynb", ".toml")


def main() -> int:
    """Print the places of words that are banned; return how many there are, at most 1."""
    listed = subprocess.run(["git", "ls-files", *WHERE], capture_output=True, text=True, check=True)
    places = [
        f"{name}:{number}: {match[0]!r} is not a word for it"
        for name in listed.stdout.splitlines()
        if name.endswith(KINDS)
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1)
        for match in BANNED.finditer(line)
    ]
    print("\n".join(places))
    return min(len(places), 1)


if __name__ == "__main__":
    sys.exit(main())
