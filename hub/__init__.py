"""Puts the parts of a hub together. No other package imports `hub`."""
