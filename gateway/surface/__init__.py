"""The sockets, requests and pages that reach the gateway."""
