"""Logs from elsewhere: impressions and clicks of any size become evidence.

`aggregate` counts them by SQL, `read_evidence` brings the counts into memory.
"""

from __future__ import annotations

from ebrank.addons.logs.aggregation import Report, aggregate
from ebrank.addons.logs.fields import UBI, FieldMap
from ebrank.addons.logs.reading import Evidence, read_evidence

__all__ = ["UBI", "Evidence", "FieldMap", "Report", "aggregate", "read_evidence"]
