"""Renders results of experiments: tables, plots, a page. Nothing here runs an experiment."""
