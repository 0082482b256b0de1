"""Checks for what other people write against our interfaces; the same that we run ourselves.

They need no test framework: a check returns, or raises an `AssertionError` that says what is wrong.
"""

from ebrank.testing.stores import check_store

__all__ = ["check_store"]
