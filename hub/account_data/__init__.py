"""The data of one user in this hub: its export and its erasure."""
