"""What one agent socket may say, and when: frames in, reports out. No I/O and no clock of its own.

A reply counts only for a chat id that this very socket was given and has not answered yet. Everything else is
refused with a non-fatal error frame and never reaches a caller.
"""

from collections.abc import Collection
from dataclasses import dataclass

from agents.links.channel import frames
from agents.links.channel.frames import BadFrame, ChatEvent, Reply, ReplyChunk
from agents.post import Chunk, Final, Said
from agents.types import Failure

MAX_FRAME_BYTES = 4 * 1_048_576  # kept by the server: a reply of 1 MiB is longer once JSON escapes it
MAX_CHUNK_BYTES = 65_536
MAX_CHUNKS = 1_000
MAX_REPLY_BYTES = 1_048_576


@dataclass(slots=True)
class Expected:
    """A prompt this socket got and has not answered: who waits, and what has come so far.

    `tells`: the end of the agent's turn ends it.
    `is_over`: the reply passed a cap and was reported as failed, but the agent has not finished it.
    """

    home: str
    until: float
    tells: bool = False
    is_over: bool = False
    chunks: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Something for the process that waits."""

    home: str
    message: Chunk | Said | Final


class ChannelProtocol:
    """The reply side of one registered connection."""

    def __init__(self) -> None:
        self._expected: dict[str, Expected] = {}

    def is_idle(self, now: float) -> bool:
        """Whether nobody waits for a reply of this socket any more."""
        return all(expected.until < now for expected in self._expected.values())

    def expect(self, chat_id: str, home: str, *, until: float, tells: bool = False) -> None:
        """A prompt is about to go out; its caller waits until then."""
        self._expected[chat_id] = Expected(home, until, tells)

    def withdraw(self, chat_id: str) -> None:
        """The prompt did not go out."""
        self._expected.pop(chat_id, None)

    def forget_before(self, moment: float) -> None:
        """Stop expecting what nobody has waited for since that moment."""
        for chat_id in [one for one, expected in self._expected.items() if expected.until < moment]:
            del self._expected[chat_id]

    def receive(self, event: ChatEvent) -> list[Report]:
        """What a chat event means for whoever waits; nothing for events that are no reply.

        Raises:
            BadFrame: it is malformed, or answers what this socket was not asked.
        """
        reply = frames.reply_of(event)
        if reply is None:
            return []
        expected = self._expected.get(reply.chat_id)
        if expected is None:
            raise BadFrame("unknown_chat", "no open prompt of this connection has that chatId")
        return self._piece(reply, expected) if isinstance(reply, ReplyChunk) else self._whole(reply, expected)

    def stop(self, over: Collection[str], now: float) -> list[Report]:
        """The agent is done with these: what nobody waits for ends, replied to or not; a reply may come late."""
        told = [chat_id for chat_id in over if chat_id in self._expected and self._expected[chat_id].tells]
        return [self._end_told(chat_id, now) for chat_id in told]

    def lost(self) -> list[Report]:
        """The connection is over: every prompt still open fails."""
        reports = [_final(chat_id, one, reason=Failure.CHANNEL_LOST) for chat_id, one in self._expected.items()]
        self._expected.clear()
        return reports

    def too_large(self, large: "TooLarge") -> list[Report]:
        """End an over-long reply as failed; once the agent has finished it, a late final frees the claim."""
        expected = self._expected[large.chat_id]
        expected.is_over = True
        failed = _final(large.chat_id, expected, reason=Failure.REPLY_TOO_LARGE)
        return [failed, *self._finish(large.chat_id)] if large.is_finished else [failed]

    def _whole(self, reply: Reply, expected: Expected) -> list[Report]:
        if size_of(reply.text) > MAX_REPLY_BYTES:
            raise TooLarge(reply.chat_id, f"a reply holds at most {MAX_REPLY_BYTES} bytes", is_finished=True)
        del self._expected[reply.chat_id]
        return [_final(reply.chat_id, expected, text=reply.text)]

    def _piece(self, chunk: ReplyChunk, expected: Expected) -> list[Report]:
        if expected.is_over:
            return self._finish(chunk.chat_id) if chunk.done else []
        reports: list[Report] = []
        if chunk.text:
            self._check_caps(chunk, expected)
            reports.append(Report(expected.home, Chunk(chunk.chat_id, expected.chunks, chunk.text)))
            expected.chunks += 1
        return reports + self._finish(chunk.chat_id) if chunk.done else reports

    def _finish(self, chat_id: str) -> list[Report]:
        return [_final(chat_id, self._expected.pop(chat_id))]

    def _end_told(self, chat_id: str, now: float) -> Report:
        expected = self._expected[chat_id]
        expected.tells, expected.until = False, now
        return _final(chat_id, expected)

    def _check_caps(self, chunk: ReplyChunk, expected: Expected) -> None:
        size = size_of(chunk.text)
        expected.size_bytes += size
        if size > MAX_CHUNK_BYTES:
            raise TooLarge(chunk.chat_id, f"a chunk holds at most {MAX_CHUNK_BYTES} bytes", is_finished=chunk.done)
        if expected.chunks >= MAX_CHUNKS:
            raise TooLarge(chunk.chat_id, f"a reply has at most {MAX_CHUNKS} chunks", is_finished=chunk.done)
        if expected.size_bytes > MAX_REPLY_BYTES:
            raise TooLarge(chunk.chat_id, f"a reply holds at most {MAX_REPLY_BYTES} bytes", is_finished=chunk.done)


class TooLarge(BadFrame):
    """A reply passed a cap; it ends as failed. `is_finished`: nothing more of it will come."""

    def __init__(self, chat_id: str, message: str, *, is_finished: bool) -> None:
        super().__init__("reply_too_large", message)
        self.chat_id = chat_id
        self.is_finished = is_finished


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _final(chat_id: str, expected: Expected, text: str | None = None, reason: str = "") -> Report:
    return Report(expected.home, Final(chat_id, expected.chunks, text, str(reason)))
