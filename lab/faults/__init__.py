"""The fault suite: a distributed hub under load, faults that are injected, and a checker (README.md)."""
