"""Families of distributions of relevance, one file each."""
