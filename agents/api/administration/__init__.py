"""What the staff sees of the whole hub (docs/reference/rest.md, Administration): reading only."""
