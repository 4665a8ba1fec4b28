"""Cuts a streamed reply into chunks the hub accepts. No I/O, no clock."""

MAX_CHUNK_CHARS = 16_000
"""At most 64,000 bytes of UTF-8, under the hub's 64 KiB per chunk."""

QUICK_CHUNKS = 500
QUICK_LINGER_S = 0.05
SLOW_CHUNKS = 800
SLOW_LINGER_S = 1.0


class Chunks:
    """Text of one reply on its way to the hub, which takes 1,000 chunks of a reply.

    The first 500 chunks leave soon after their text came, the next 300 once a second, and after that only
    full ones: a reply of 1,000,000 bytes has at most 62 of those, so it always fits.
    """

    def __init__(self) -> None:
        self._text = ""
        self._taken = 0

    @property
    def taken(self) -> int:
        """How many pieces of the reply there are: chunks, and what was counted."""
        return self._taken

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be sent."""
        return not self._text

    @property
    def is_full(self) -> bool:
        """Whether there is enough text for a chunk of full size."""
        return len(self._text) >= MAX_CHUNK_CHARS

    @property
    def linger_s(self) -> float | None:
        """How long to gather text before a chunk that is not full may leave; None means until the end."""
        if self._taken < QUICK_CHUNKS:
            return QUICK_LINGER_S
        return SLOW_LINGER_S if self._taken < SLOW_CHUNKS else None

    def count(self) -> None:
        """A piece of another kind leaves."""
        self._taken += 1

    def add(self, text: str) -> None:
        """Put text behind what waits already."""
        self._text += text

    def take(self) -> str:
        """Give the next chunk, as large as it may be."""
        chunk, self._text = self._text[:MAX_CHUNK_CHARS], self._text[MAX_CHUNK_CHARS:]
        self._taken += 1
        return chunk
