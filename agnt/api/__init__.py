"""REST for the owner of a network, below `/api/v1/network`. What is absent and what is not yours look the same."""
