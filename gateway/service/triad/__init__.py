"""Proposals, votes and decisions of a team."""
