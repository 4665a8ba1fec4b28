"""Takes what the hub sends to its processes, in place of the hub's own sender."""

from collections.abc import Iterator
from contextlib import contextmanager

from agents.transcript.announcements import Carrier, set_carrier


@contextmanager
def carrying(carrier: Carrier) -> Iterator[None]:
    """Have `carrier` called with each batch of messages, until the block ends."""
    before = set_carrier(carrier)
    try:
        yield
    finally:
        set_carrier(before)
