"""Simulated cold-start search: users, arrivals, sessions, and the loop that runs them."""
