"""Other dialects of messages between agents, as frames of `a2a-v1` and back."""
