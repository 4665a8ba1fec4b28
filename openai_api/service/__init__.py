"""What the surface reads: the agents that a caller may ask."""
