"""The HTTP and socket surface: the calls of operators, `/cli`, the pages of a session."""
