"""The results of the A2A conformance kit, recorded and shown as a page of the reference."""
