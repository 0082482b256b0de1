"""The paper's rankers, one algorithm per file."""
