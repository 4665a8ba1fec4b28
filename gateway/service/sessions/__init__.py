"""Sessions of the protocol: what the agents of a team said to each other (section 11)."""
