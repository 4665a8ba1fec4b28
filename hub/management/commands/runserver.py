"""`manage.py runserver` with daphne, for work on pages. No other program of the hub loads daphne and Twisted."""

from daphne.management.commands.runserver import Command

__all__ = ["Command"]
