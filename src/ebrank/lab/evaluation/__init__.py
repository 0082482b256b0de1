"""How good a run was, and whether a difference between two runs is luck."""
