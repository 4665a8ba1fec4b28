"""Clients that give up a call of a tool after 60 s, as far as their User-Agent says so."""

import re

from kit.durations import seconds

RETURNS_WITHIN_S = seconds(50.0, at_least_s=1.0)
# Codex documents 60 s (`tool_timeout_sec`). `node` and `undici` are the `fetch` of Node.js: programs with the
# official TypeScript SDK, whose requests end after 60 s unless the program chooses another time.
_GIVES_UP_AFTER_60_S = re.compile(r"codex-mcp-client(/.*)?|node|undici", re.IGNORECASE)


def find_return_s(user_agent: str) -> float | None:
    """How long a call may take until it returns what is known; None where the client has no known time-out."""
    return RETURNS_WITHIN_S if _GIVES_UP_AFTER_60_S.fullmatch(user_agent) else None
