"""Signing in: GitHub vouches for a person, the hub hands out sessions and app tokens of its own."""
