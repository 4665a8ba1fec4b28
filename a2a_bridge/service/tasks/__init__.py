"""A2A's view of a turn, kept for its caller: one contract, a memory for each kind of deployment."""
