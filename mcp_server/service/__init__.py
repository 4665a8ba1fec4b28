"""The work of a tool's call: the agents it lists, the ask it starts, the questions to its client's user."""
