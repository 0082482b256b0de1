"""The report's web page; `html` is the entrance, `templates/` has its HTML, CSS and JavaScript."""
