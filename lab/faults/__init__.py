"""The fault suite: a grown hub under load, faults done to it, and a checker of what is left (README.md)."""
