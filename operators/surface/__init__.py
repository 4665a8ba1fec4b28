"""What HTTP and sockets reach: the calls of operators, `/cli`, the pages of a session."""
