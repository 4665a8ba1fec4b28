"""The reads of the surface: the agents that a caller may ask."""
