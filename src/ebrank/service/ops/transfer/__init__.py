"""Moving a store elsewhere: to Parquet files that any tool reads, and back.

`exporting` writes a folder, `exported` reads one, `copying` makes a store from it or from another
store. All stream: memory does not grow with the log.
"""
