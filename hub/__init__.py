"""Puts the house together. Nobody imports it."""

from hub.celery import app as celery_app

__all__ = ["celery_app"]
