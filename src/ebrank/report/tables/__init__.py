"""Tables as people want them: on a terminal, in Markdown, LaTeX, CSV and HTML, one file each."""

TABLE_FORMS = ("md", "tex", "csv")
"""The files that hold a table, by their endings."""
