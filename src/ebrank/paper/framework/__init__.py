"""What all exhibits share: entrants, measures, the runner, and the outcome."""
