"""What happens in a session: an item enters, a list is shown, its user clicks, counts grow."""
