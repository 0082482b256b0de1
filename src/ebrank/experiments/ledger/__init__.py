"""Published numbers beside ours: the references, and the entries to show."""
