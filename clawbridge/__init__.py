"""The command `clawbridge`: ask the agents of a hub from a shell, and start the hub and the connector.

It speaks the public API of a hub alone: A2A 1.0 over HTTP+JSON, and `/api/v1` (docs/adr/0122).
"""

VERSION = "0.1.0"
