"""Learning-to-rank data: reading, preparing, generating."""
