"""The frames of `a2a-v1` and the rules for them. The module does no I/O."""
