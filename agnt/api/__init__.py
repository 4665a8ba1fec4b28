"""REST for the owner of a network, below `/api/v1/network`. Absent rows and rows of other owners look the same."""
