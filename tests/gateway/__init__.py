"""The gateway of `a2a-v1`."""
