"""The settings that `gateway` reads (kit/env.py)."""

from kit import env

LETTERS_PER_OWNER = env.integer("LETTERS_PER_OWNER", 5000)
"""[stored messages](gateway.md#inboxes) of the gateway for the agents of one owner. At the limit the hub deletes
delivered ones first, then refuses new ones with 3003 `inbox_full`. At most a quarter of them may be waiting
messages of one sender; all agents of another owner are one sender"""
LETTERS_MB_PER_OWNER = env.integer("LETTERS_MB_PER_OWNER", 64)
"""mebibytes of these messages, with the same rules"""
