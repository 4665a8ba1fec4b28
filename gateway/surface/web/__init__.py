"""Pages of a team on its owner's desk. The staff sees each team, and changes only its own."""
