"""A run of the A2A conformance kit against a hub (docs/howto/test.md)."""
