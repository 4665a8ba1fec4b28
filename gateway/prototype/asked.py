"""What the two sides of a socket of the dialect asked each other and have not answered. No I/O."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeVar

from gateway.wire.envelope import Json

MOST_OPEN = 200

Kept = TypeVar("Kept")


@dataclass
class AskedFrame:
    """A frame of the client that the hub has not answered to its end. `made`: the frame in `a2a-v1`.

    `is_queued`: the client knows that its message waits; `is_sent_again`: to the inbox of its recipient.
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
        """Whether it is a message that has an answer only if it fails."""
        return self.type == "message" and self.made["metadata"].get("requiresResponse") is not True


class OpenFrames:
    """By correlation id; the latest MOST_OPEN of each kind."""

    def __init__(self) -> None:
        self._answered: OrderedDict[str, AskedFrame] = OrderedDict()
        self._told: OrderedDict[str, AskedFrame] = OrderedDict()  # apart: many of them push no other frame out
        # What the client is asked, by correlation ids and by ids of frames: the ids of each.
        self._of_client: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def add(self, correlation_id: object, asked: AskedFrame) -> None:
        """Note a frame of the client."""
        _keep(self._told if asked.is_told else self._answered, correlation_id, asked)

    def find(self, correlation_id: str) -> AskedFrame | None:
        """The frame of the client that has this id."""
        return self._answered.get(correlation_id) or self._told.get(correlation_id)

    def close(self, correlation_id: str) -> None:
        """Note that a frame of the client was answered to its end."""
        self._answered.pop(correlation_id, None)
        self._told.pop(correlation_id, None)

    def add_message(self, correlation_id: str, frame_id: str) -> None:
        """Note a message that the client is to answer."""
        for known in (correlation_id, frame_id):
            _keep(self._of_client, known, (correlation_id, frame_id))

    def find_message(self, known: str) -> str:
        """The correlation id of a message that the client is to answer; empty: there is none.

        `known`: that id, or the id of the frame.
        """
        return self._of_client.get(known, ("", ""))[0]

    def answer_message(self, correlation_id: object) -> bool:
        """Note that the client answers a message; False: it was not asked that."""
        if not isinstance(correlation_id, str) or correlation_id not in self._of_client:
            return False
        for known in self._of_client[correlation_id]:
            self._of_client.pop(known, None)
        return True


def _keep(kept: OrderedDict[str, Kept], key: object, value: Kept) -> None:
    if isinstance(key, str):
        kept[key] = value
        if len(kept) > MOST_OPEN:
            kept.popitem(last=False)
