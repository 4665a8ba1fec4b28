"""Asks of the hub to venues: past their breakers, through the hub or over HTTP."""
