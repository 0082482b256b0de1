"""Optional parts, imported when needed; if one is missing, the error names the install command.

>>> import_extra("json", extra="report", purpose="to read").__name__
'json'
"""

from __future__ import annotations

import importlib
from types import ModuleType

from ebrank.errors import MissingExtraError


def import_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Return a module that belongs to an extra of this package.

    Raises:
        MissingExtraError: if it is not installed, saying how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as problem:
        top = module.partition(".")[0]
        if problem.name is None or problem.name.partition(".")[0] != top:
            raise  # it is installed, but broken
        raise MissingExtraError(
            f"{top} is needed {purpose} and not installed; run: pip install 'ebrank[{extra}]'"
        ) from None
