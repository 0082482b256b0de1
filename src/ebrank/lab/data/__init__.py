"""Learning-to-rank data: reading, preparing, generating.

`load` gives a dataset ready for experiments, by name or by path:

>>> import ebrank.lab.data
>>> ebrank.lab.data.load("mq2007-like", scale=0.01)
Dataset('mq2007-like×0.01', queries=16, rows=..., features=..., max_label=2)

`read` and `generate` give the raw dataset that `load` passes to `prepare`; so does
`from_arrays`, from data in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ebrank.environment.exports import on_first_use

if TYPE_CHECKING:
    from ebrank.lab.data.arrays import from_arrays as from_arrays
    from ebrank.lab.data.dataset import Dataset as Dataset
    from ebrank.lab.data.letor import read as read
    from ebrank.lab.data.loading import load as load
    from ebrank.lab.data.preparation import prepare as prepare
    from ebrank.lab.data.published import DatasetNote as DatasetNote
    from ebrank.lab.data.published import DatasetWarning as DatasetWarning
    from ebrank.lab.data.synthetic import generate as generate

# Imported on first use, because they need compiled code: `import ebrank.lab.data` stays cheap.
_HOMES = {
    "Dataset": "ebrank.lab.data.dataset",
    "DatasetNote": "ebrank.lab.data.published",
    "DatasetWarning": "ebrank.lab.data.published",
    "from_arrays": "ebrank.lab.data.arrays",
    "generate": "ebrank.lab.data.synthetic",
    "load": "ebrank.lab.data.loading",
    "prepare": "ebrank.lab.data.preparation",
    "read": "ebrank.lab.data.letor",
}
__all__ = list(_HOMES)

__getattr__, __dir__ = on_first_use(__name__, _HOMES)
