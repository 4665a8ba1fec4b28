"""One prompt that a socket has not answered, and the caps of its reply."""

from dataclasses import dataclass, field

from agents.links.channel.frames import BadFrame
from agents.pieces import MAX_PIECES, MAX_REPLY_BYTES

MAX_CHUNK_BYTES = 65_536


@dataclass(slots=True)
class Expected:
    """A prompt this socket got and has not answered: who waits, and what has come so far.

    `tells`: the end of the agent's turn ends it.
    `is_over`: the reply passed a cap and was reported as failed, but the agent has not finished it.
    `is_wanted`: its caller has not canceled it.
    """

    home: str
    until: float
    tells: bool = False
    is_over: bool = False
    is_wanted: bool = True
    pieces: int = 0
    size_bytes: int = 0
    open_artifacts: set[str] = field(default_factory=set)

    def has_open(self, artifact_id: str) -> bool:
        """Whether parts may still be added to that artifact."""
        return artifact_id in self.open_artifacts

    def keep_open(self, artifact_id: str, is_open: bool) -> None:
        """An artifact came: parts may follow, or not."""
        (self.open_artifacts.add if is_open else self.open_artifacts.discard)(artifact_id)

    def count(self, chat_id: str, size: int, *, is_finished: bool = False) -> int:
        """Take one more piece of that size into account; its number.

        Raises:
            TooLarge: the reply passes a cap with it.
        """
        self.size_bytes += size
        if self.pieces >= MAX_PIECES:
            raise TooLarge(chat_id, f"a reply has at most {MAX_PIECES} pieces", is_finished=is_finished)
        if self.size_bytes > MAX_REPLY_BYTES:
            raise TooLarge(chat_id, f"a reply holds at most {MAX_REPLY_BYTES} bytes", is_finished=is_finished)
        self.pieces += 1
        return self.pieces - 1


class TooLarge(BadFrame):
    """A reply passed a cap; it ends as failed. `is_finished`: nothing more of it will come."""

    def __init__(self, chat_id: str, message: str, *, is_finished: bool) -> None:
        super().__init__("reply_too_large", message)
        self.chat_id = chat_id
        self.is_finished = is_finished


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
