"""REST calls of accounts, and of signing in."""
