"""Rank with user behavior without burying what is new.

The public names are imported when first used, so `import ebrank` costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ebrank.client import AsyncClient, Client
    from ebrank.data import Dataset, load
    from ebrank.errors import DataError, EBRankError, ModelFileError, ParameterError
    from ebrank.evidence import BehaviorStats, Examination
    from ebrank.policy.policies import Policy
    from ebrank.policy.ranker import EBRanker, Ranking

__version__ = "0.1.0"

_HOMES = {
    "AsyncClient": "ebrank.client",
    "BehaviorStats": "ebrank.evidence",
    "Client": "ebrank.client",
    "DataError": "ebrank.errors",
    "Dataset": "ebrank.data",
    "EBRankError": "ebrank.errors",
    "EBRanker": "ebrank.policy.ranker",
    "Examination": "ebrank.evidence",
    "ModelFileError": "ebrank.errors",
    "ParameterError": "ebrank.errors",
    "Policy": "ebrank.policy.policies",
    "Ranking": "ebrank.policy.ranker",
    "load": "ebrank.data",
}

__all__ = [
    "AsyncClient",
    "BehaviorStats",
    "Client",
    "DataError",
    "Dataset",
    "EBRankError",
    "EBRanker",
    "Examination",
    "ModelFileError",
    "ParameterError",
    "Policy",
    "Ranking",
    "__version__",
    "load",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ebrank' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
