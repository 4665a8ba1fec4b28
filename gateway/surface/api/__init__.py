"""REST calls of a team."""
