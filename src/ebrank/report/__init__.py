"""What experiments came to, rendered: tables, plots, a page. Nothing here runs an experiment."""
