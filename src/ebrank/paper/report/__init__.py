"""The report of a reproduction: a page, tables, figures and the ledger; nothing here runs one."""
