"""What the A2A conformance kit found, recorded and shown as a page of the reference."""
