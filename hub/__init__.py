"""Puts the parts of a hub together. No other package imports it."""

from hub.celery import app as celery_app

__all__ = ["celery_app"]
