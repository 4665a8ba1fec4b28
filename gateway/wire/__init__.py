"""The frames of `a2a-v1` and the rules for them. No I/O."""
