"""All that one user has in this hub: to take away, and to erase."""
