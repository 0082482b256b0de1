"""Moving a store elsewhere: to Parquet files that any tool reads, and back.

`exporting` writes a folder, `exported` reads one, `importing` makes a store from it, `tables`
defines the columns. All stream: memory does not grow with the log.
"""
