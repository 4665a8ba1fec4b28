"""The settings that `webhooks` reads (kit/env.py)."""

from kit import env

WEBHOOK_ALLOW_PRIVATE = env.flag("WEBHOOK_ALLOW_PRIVATE")
"""`1`: webhooks may go to any address and port, also by plain http. Every user can then make the hub send requests
into your network, and read the first 1024 bytes of the answers"""
WEBHOOK_PORTS = env.ports("WEBHOOK_PORTS", "443 8443")
"""ports to which webhooks may be sent"""
WEBHOOKS_PER_OWNER = env.integer("WEBHOOKS_PER_OWNER", 50)
"""webhooks one owner may have"""
