"""Compiled parts of rankers, imported when first needed."""
