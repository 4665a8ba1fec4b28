"""Subscribing, queueing and sending."""
