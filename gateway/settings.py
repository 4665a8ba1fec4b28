"""The settings that `gateway` reads (kit/env.py)."""

from kit import env

LETTERS_PER_OWNER = env.whole("LETTERS_PER_OWNER", 5000)
"""messages of the [gateway](gateway.md#inboxes) that may be kept for the agents of one owner. Those that were
delivered are deleted first; of one sender at most a quarter may wait. When it is full, messages are refused with
3003 `inbox_full`"""
LETTERS_MB_PER_OWNER = env.whole("LETTERS_MB_PER_OWNER", 64)
"""mebibytes of these messages, likewise"""
