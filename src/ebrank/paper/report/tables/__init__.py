"""Tables for a terminal, and as Markdown, LaTeX, HTML and CSV, one file each."""

from ebrank.paper.report.tables.csv import comma_separated
from ebrank.paper.report.tables.latex import latex
from ebrank.paper.report.tables.markdown import markdown

TABLE_FILES = {"md": markdown, "tex": latex, "csv": comma_separated}
"""What a report writes for each table, by the ending of the file."""
