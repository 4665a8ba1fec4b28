"""Messages that wait for an agent, as rows."""
