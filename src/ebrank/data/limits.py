"""The largest label, feature number and query id that files may have."""

from __future__ import annotations

MAX_LABEL = 30
"""Gains grow as 2^label: no real scale comes close."""
MAX_FEATURE = 100_000
"""Features become columns of a dense table."""
MAX_QUERY_ID = 256
"""Bytes of a query id."""
