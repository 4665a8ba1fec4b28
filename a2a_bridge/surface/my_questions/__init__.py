"""The questions of a caller to agents: the query, the REST list and the page."""
