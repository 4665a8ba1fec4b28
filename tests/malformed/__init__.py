"""Unsound requests, over every method, dialect and binding."""
