"""The events, and the signed bodies in which receivers get them. No I/O."""
