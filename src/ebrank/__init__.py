"""Rank with user behavior without burying what is new."""
