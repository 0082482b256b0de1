"""Published numbers beside ours: the references, known differences, and the entries to show."""
