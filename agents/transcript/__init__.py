"""The parts of a session besides its turns: events, op-messages, shares, permissions, files, token usage."""
