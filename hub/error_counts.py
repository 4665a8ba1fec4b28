"""How often this process complained lately: what its logs hold, as numbers for the health page."""

import logging
from collections import Counter, deque
from time import monotonic

KEPT = 10_000
WINDOW_S = 3600.0

_totals: Counter[str] = Counter()
_lately: deque[tuple[float, str]] = deque(maxlen=KEPT)


class ErrorCounts(logging.Handler):
    """Counts records of level ERROR and above by the name of their event; their texts stay in the log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Note one. Libraries put words of others into theirs: those count under the logger's name."""
        event = record.msg if isinstance(record.msg, str) and record.msg.replace(".", "_").isidentifier() else ""
        _lately.append((monotonic(), event or record.name))
        _totals[event or record.name] += 1


def errors_lately() -> list[tuple[str, int]]:
    """The events of the last hour and how often each came, the most frequent first."""
    since = monotonic() - WINDOW_S
    return Counter(name for at, name in list(_lately) if at > since).most_common()


def error_totals() -> list[tuple[str, int]]:
    """The same events, counted since this process started. Their names are in the code: there are not many."""
    return list(_totals.items())
