"""Figures as SVG and PNG; start with `render`."""
