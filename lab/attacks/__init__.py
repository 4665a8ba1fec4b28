"""Attacks by one free account, and what other callers notice of them: `python -m lab.attacks`."""
