"""The surface for operators at command lines and pages: prompts, peers, and the socket `/cli`."""
