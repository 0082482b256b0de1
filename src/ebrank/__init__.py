"""Rank with user behavior without burying what is new.

The public names are imported when first used, so `import ebrank` costs almost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebrank.environment.exports import on_first_use

if TYPE_CHECKING:
    from ebrank.client import AsyncClient as AsyncClient
    from ebrank.client import Client as Client
    from ebrank.errors import DataError as DataError
    from ebrank.errors import EBRankError as EBRankError
    from ebrank.errors import ModelFileError as ModelFileError
    from ebrank.errors import ParameterError as ParameterError
    from ebrank.evidence import BehaviorStats as BehaviorStats
    from ebrank.evidence import Examination as Examination
    from ebrank.lab.data import Dataset as Dataset
    from ebrank.lab.data import load as load
    from ebrank.model.policy.policies import Policy as Policy
    from ebrank.model.policy.ranker import EBRanker as EBRanker
    from ebrank.model.policy.ranker import Ranking as Ranking

__version__ = "0.2.0"

_HOMES = {
    "AsyncClient": "ebrank.client",
    "BehaviorStats": "ebrank.evidence",
    "Client": "ebrank.client",
    "DataError": "ebrank.errors",
    "Dataset": "ebrank.lab.data",
    "EBRankError": "ebrank.errors",
    "EBRanker": "ebrank.model.policy.ranker",
    "Examination": "ebrank.evidence",
    "ModelFileError": "ebrank.errors",
    "ParameterError": "ebrank.errors",
    "Policy": "ebrank.model.policy.policies",
    "Ranking": "ebrank.model.policy.ranker",
    "load": "ebrank.lab.data",
}
__all__ = ["__version__", *_HOMES]
__getattr__, __dir__ = on_first_use(__name__, _HOMES)
