"""The frames of one socket of the dialect that the hub or the client has not answered yet. No I/O."""

from dataclasses import dataclass

from gateway.wire.envelope import Json
from kit.newest import NewestEntries

MOST_OPEN = 200


@dataclass
class AskedFrame:
    """A frame of the client to which the hub has not sent the last answer. `made`: the frame in `a2a-v1`.

    `is_queued`: the client knows that its message waits. `is_sent_again`: sent again, to the recipient's inbox.
    """

    frame: Json
    made: Json
    is_queued: bool = False
    is_sent_again: bool = False

    @property
    def type(self) -> str:
        """The type of the client's frame."""
        return str(self.frame["type"])

    @property
    def is_told(self) -> bool:
        """Whether the frame is a message that is answered only if it fails."""
        return self.type == "message" and self.made["metadata"].get("requiresResponse") is not True


class OpenFrames:
    """Finds unanswered frames by correlation id; keeps the latest MOST_OPEN of each kind."""

    def __init__(self) -> None:
        self._answered = NewestEntries[str, AskedFrame](MOST_OPEN)
        self._told = NewestEntries[str, AskedFrame](MOST_OPEN)  # apart: many tells push out no other frame
        # Messages for the client, under their correlation id and under their frame id: both ids.
        self._of_client = NewestEntries[str, tuple[str, str]](MOST_OPEN)

    def add(self, correlation_id: object, asked: AskedFrame) -> None:
        """Note a frame of the client."""
        if isinstance(correlation_id, str):
            (self._told if asked.is_told else self._answered)[correlation_id] = asked

    def find(self, correlation_id: str) -> AskedFrame | None:
        """The frame of the client that has this id."""
        return self._answered.get(correlation_id) or self._told.get(correlation_id)

    def close(self, correlation_id: str) -> None:
        """Note that a frame of the client got its last answer."""
        self._answered.pop(correlation_id, None)
        self._told.pop(correlation_id, None)

    def add_message(self, correlation_id: str, frame_id: str) -> None:
        """Note a message that the client is to answer."""
        for known in (correlation_id, frame_id):
            self._of_client[known] = (correlation_id, frame_id)

    def find_message(self, known: str) -> str:
        """The correlation id of a message that the client is to answer; empty if there is none.

        `known`: the correlation id, or the id of the frame.
        """
        return self._of_client.get(known, ("", ""))[0]

    def answer_message(self, correlation_id: object) -> bool:
        """Note that the client answers a message; False: the client got no such message."""
        if not isinstance(correlation_id, str) or correlation_id not in self._of_client:
            return False
        for known in self._of_client[correlation_id]:
            self._of_client.pop(known, None)
        return True
