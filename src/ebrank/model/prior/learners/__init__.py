"""Learners from features to a score, one file each."""
