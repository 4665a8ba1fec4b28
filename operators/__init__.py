"""The surface of people at command lines and pages: prompts, peers, and the socket `/cli`."""
