"""Messages between clients and agents, as turns."""
