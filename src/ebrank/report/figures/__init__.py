"""Figures as SVG and PNG; `render` is the entrance."""
