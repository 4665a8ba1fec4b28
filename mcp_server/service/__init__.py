"""What a tool's call does: the agents it lists, the ask it starts, the questions to its client's user."""
