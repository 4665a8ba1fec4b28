"""The dialect of the protocol's prototype, translated at the edge of a socket (docs/adr/0152)."""
