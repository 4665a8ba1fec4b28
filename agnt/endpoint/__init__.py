"""The HTTP surface of envelopes: `/a2a/v1`, `/a2a/v1/status` and `/network/venues`, and their description."""
