"""The lab: exhibits (the paper's tables and figures, and more), the ledger, and what makes them.

- `exhibits/` has one file for each table or figure, and lists them.
- `framework/` runs them: entrants, measures, tuning, the runner, tables and figures as values.
- `ledger` puts ours beside the published figures of `references`.
- `assembly` makes the `document` of a reproduction, which is `results.json`.
- `comparison` is what `ebrank compare` shows.
"""
