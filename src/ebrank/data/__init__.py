"""Learning-to-rank data: reading, preparing, generating.

`load` gives a dataset ready for experiments, by name or by path:

>>> import ebrank.data
>>> ebrank.data.load("mq2007-like", scale=0.01)
Dataset('mq2007-like×0.01', queries=16, rows=..., features=..., max_label=2)

`read` and `generate` give the raw dataset that `load` passes to `prepare`; so do `from_table` and
`from_arrays`, from data in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebrank.environment.exports import on_first_use

if TYPE_CHECKING:
    from ebrank.data.dataset import Dataset as Dataset
    from ebrank.data.letor import read as read
    from ebrank.data.loading import load as load
    from ebrank.data.preparation import prepare as prepare
    from ebrank.data.published import DatasetNote as DatasetNote
    from ebrank.data.published import DatasetWarning as DatasetWarning
    from ebrank.data.synthetic import generate as generate
    from ebrank.data.table import from_arrays as from_arrays
    from ebrank.data.table import from_table as from_table

# Imported on first use, because they need compiled code: `import ebrank.data` stays cheap.
_HOMES = {
    "Dataset": "ebrank.data.dataset",
    "DatasetNote": "ebrank.data.published",
    "DatasetWarning": "ebrank.data.published",
    "from_arrays": "ebrank.data.table",
    "from_table": "ebrank.data.table",
    "generate": "ebrank.data.synthetic",
    "load": "ebrank.data.loading",
    "prepare": "ebrank.data.preparation",
    "read": "ebrank.data.letor",
}
__all__ = list(_HOMES)

__getattr__, __dir__ = on_first_use(__name__, _HOMES)
