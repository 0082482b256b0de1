"""Tables as people want them: on a terminal, in Markdown, LaTeX, CSV and HTML, one file each."""
