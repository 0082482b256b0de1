"""What fields mean: the text below each field of a class, its only declaration.

Settings, requests and responses are classes whose fields have a type with limits, a default and
such a text. Errors, the OpenAPI document and the tables of the documentation show it. pydantic
reads the same (`use_attribute_docstrings`).
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import ModuleType


@cache
def meanings(owner: type | ModuleType) -> dict[str, str]:
    """Return the meaning of each field of a class, or constant of a module, that has one.

    >>> from ebrank.service.settings import ServerSettings
    >>> meanings(ServerSettings)["port"]
    'port to listen on; 0 picks a free one'
    """
    body = ast.parse(dedent(inspect.getsource(owner))).body
    if isinstance(owner, type) and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    found = dict[str, str]()
    for pair in pairwise(body):
        match pair:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found
