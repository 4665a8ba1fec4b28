"""What a caller asked of agents: the query, the REST list and the page."""
