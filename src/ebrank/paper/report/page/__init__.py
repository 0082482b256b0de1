"""The report's web page; start with `html`. `templates/` has its HTML, CSS and JavaScript."""
