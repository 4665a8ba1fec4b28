"""Signing in: an identity provider authenticates the person, and the hub issues sessions and app tokens."""
