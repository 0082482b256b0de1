"""What all exhibits share: who takes part, what is measured, how it is run and what comes of it."""
