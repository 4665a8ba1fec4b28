"""Taking a user's name out of the record of what people did in the admin (`accounts.acts`); the acts stay."""

import re
from urllib.parse import parse_qsl, urlencode

from django.contrib.admin.models import LogEntry

from hub.estate.scrubbing import Scrubber, rewrite
from hub.estate.traces import Traces

ERASED = "(erased)"
REPR_CHARS = 200  # what the column takes; the word may be longer than the name
LIST = "a list: "  # and what was searched for, as in an address
NAME = re.compile(r"[\w@/-]+")
WHO_WAS_HALTED = re.compile(r"(?<=\Ahalted )[\w-]+(?='s )")


def scrub_acts(traces: Traces) -> None:
    """Their name and their agents' go; longer names that contain them stay."""
    scrubber = Scrubber.of(traces, ERASED)

    def message(text: str) -> str:
        if text.startswith(LIST):
            return LIST + _searched(scrubber, text.removeprefix(LIST))
        return WHO_WAS_HALTED.sub(lambda name: scrubber.text(name[0]), scrubber.text(text))

    rewrite(LogEntry.objects.all(), "object_repr", lambda text: scrubber.text(text)[:REPR_CHARS])
    rewrite(LogEntry.objects.all(), "change_message", message)


def _searched(scrubber: Scrubber, query: str) -> str:
    asked = parse_qsl(query, keep_blank_values=True)
    clean = [(key, NAME.sub(lambda name: scrubber.text(name[0]), value)) for key, value in asked]
    return query if clean == asked else urlencode(clean, safe="()@/")
