"""The protocol state of one agent socket: frames in, reports out. No I/O and no clock of its own.

A reply counts only for a chat id that was sent to this socket and is not answered yet. Everything else is
refused with a non-fatal error frame and never reaches a caller.
"""

from collections.abc import Collection

from msgspec import Struct

from agents.core.post import ExtraPiece, Final, PostedChunk
from agents.links.channel.frames import FROM_AGENT, TO_AGENT, BadChannelFrame, ChatEvent
from agents.links.channel.payloads import Reply, ReplyChunk, ReplyFrame, TaskArtifact, TaskStatus, size_of_json
from agents.links.sockets import Report
from agents.models.choices import TurnFailure
from agents.transcript.pieces import MAX_PIECES, MAX_REPLY_BYTES, Extra, Usage
from kit.describe import CHANNEL_TOKEN, DescribedSocket

MAX_FRAME_BYTES = 4 * 1_048_576  # kept by the server: a reply of 1 MiB is longer once JSON escapes it
MAX_CHUNK_BYTES = 65_536


class TooLarge(BadChannelFrame):
    """A reply passed a cap; it ends as failed. `is_finished`: nothing more of it will come."""

    def __init__(self, chat_id: str, message: str, *, is_finished: bool) -> None:
        super().__init__("reply_too_large", message)
        self.chat_id = chat_id
        self.is_finished = is_finished


class UnknownChat(BadChannelFrame):
    """A reply to a chat id that is not open on this connection."""

    def __init__(self) -> None:
        super().__init__("unknown_chat", "no open prompt of this connection has that chatId")


class AwaitedReply(Struct):
    """A prompt this socket got and has not answered: who waits, and what has come so far.

    `tells`: the end of the agent's turn ends it.
    `is_over`: the reply passed a cap and was reported as failed, but the agent has not finished it.
    `is_wanted`: its caller has not canceled it. `usage`: what the turn used, as a frame said last.
    """

    home: str
    until: float
    tells: bool = False
    is_over: bool = False
    is_wanted: bool = True
    pieces: int = 0
    size_bytes: int = 0
    usage: Usage | None = None
    open_artifacts: frozenset[str] = frozenset()  # mostly none: an empty set of its own would take 200 bytes

    def has_open(self, artifact_id: str) -> bool:
        """Whether parts may still be added to that artifact."""
        return artifact_id in self.open_artifacts

    def keep_open(self, artifact_id: str, is_open: bool) -> None:
        """An artifact came: parts may follow, or not."""
        self.open_artifacts = (self.open_artifacts - {artifact_id}) | ({artifact_id} if is_open else set())

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


class ChannelProtocol:
    """The reply side of one registered connection."""

    def __init__(self) -> None:
        self._expected: dict[str, AwaitedReply] = {}

    def is_idle(self, now: float) -> bool:
        """Whether no caller waits for a reply of this socket any more."""
        return all(one.until < now or not one.is_wanted for one in self._expected.values())

    def expect(self, chat_id: str, home: str, *, until: float, tells: bool = False) -> None:
        """Add a prompt that is about to be sent, with the time until which its caller waits."""
        self._expected[chat_id] = AwaitedReply(home, until, tells)

    def withdraw(self, chat_id: str) -> None:
        """Remove a prompt that was not sent."""
        self._expected.pop(chat_id, None)

    def cancel(self, chat_id: str) -> bool:
        """Cancel a prompt for its caller; False when none is open under that id.

        The agent's own end is taken all the same, for as long as it was: it frees the claim.
        """
        if (expected := self._expected.get(chat_id)) is None:
            return False
        expected.is_wanted = False
        return True

    def forget_before(self, moment: float) -> None:
        """Stop expecting replies for which no caller has waited since that moment."""
        for chat_id in [one for one, expected in self._expected.items() if expected.until < moment]:
            del self._expected[chat_id]

    def take_reply(self, saying: ReplyFrame) -> list[Report]:
        """The reports that a piece or the end of a reply makes.

        Raises:
            UnknownChat: it answers what this socket was not asked, or has answered.
            BadChannelFrame: it passes a cap, or is not in order.
        """
        expected = self._expected.get(saying.chat_id)
        if expected is None:
            raise UnknownChat
        match saying:
            case ReplyChunk():
                return self._chunk(saying, expected)
            case Reply():
                return self._whole(saying, expected)
            case TaskStatus() if not saying.is_note:
                return self._ended(saying, expected)
            case _:
                return self._piece(saying, expected)

    def add_piece(self, chat_id: str, piece: Extra) -> list[Report]:
        """A piece that the hub itself makes of what the agent asked; nothing when its reply is over.

        Raises:
            TooLarge: the reply passes a cap with it.
        """
        expected = self._expected.get(chat_id)
        if expected is None or expected.is_over or not expected.is_wanted:
            return []
        number = expected.count(chat_id, size_of_json(piece))
        return [Report(expected.home, ExtraPiece(chat_id, number, piece))]

    def stop(self, over: Collection[str], now: float) -> list[Report]:
        """The agent is done with these: those that were told end, with or without a reply; one may come late."""
        told = [chat_id for chat_id in over if chat_id in self._expected and self._expected[chat_id].tells]
        return [report for chat_id in told for report in self.end_told(chat_id, now)]

    def end_told(self, chat_id: str, now: float) -> list[Report]:
        """End a prompt whose caller waits for no reply; nothing when it is over."""
        if (expected := self._expected.get(chat_id)) is None:
            return []
        # Kept, and forgotten after LATE_REPLY_S: a reply may still follow the end of the turn.
        expected.tells, expected.until = False, now
        return [_final(chat_id, expected)]

    def lost(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> list[Report]:
        """Fail every open prompt with this reason, because the connection is over."""
        reports = [_final(chat_id, one, reason=reason) for chat_id, one in self._expected.items()]
        self._expected.clear()
        return reports

    def too_large(self, large: TooLarge) -> list[Report]:
        """End an over-long reply as failed; once the agent has finished it, a late final frees the claim."""
        expected = self._expected[large.chat_id]
        expected.is_over = True
        failed = _final(large.chat_id, expected, reason=TurnFailure.REPLY_TOO_LARGE)
        return [failed, *self._finish(large.chat_id)] if large.is_finished else [failed]

    def _whole(self, reply: Reply, expected: AwaitedReply) -> list[Report]:
        if reply.usage is not None:
            expected.usage = reply.usage.kept
        _check_whole(reply)
        del self._expected[reply.chat_id]
        is_direct = reply.direct and not expected.pieces
        final = Final(reply.chat_id, expected.pieces, reply.text, direct=is_direct, usage=expected.usage)
        return [Report(expected.home, final)]

    def _chunk(self, chunk: ReplyChunk, expected: AwaitedReply) -> list[Report]:
        if chunk.usage is not None:
            expected.usage = chunk.usage.kept
        if expected.is_over:
            return self._finish(chunk.chat_id) if chunk.done else []
        reports: list[Report] = []
        if chunk.text:
            size = size_of(chunk.text)
            if size > MAX_CHUNK_BYTES:
                wide = f"a chunk holds at most {MAX_CHUNK_BYTES} bytes"
                raise TooLarge(chunk.chat_id, wide, is_finished=chunk.done)
            number = expected.count(chunk.chat_id, size, is_finished=chunk.done)
            reports.append(Report(expected.home, PostedChunk(chunk.chat_id, number, chunk.text)))
        return reports + self._finish(chunk.chat_id) if chunk.done else reports

    def _ended(self, status: TaskStatus, expected: AwaitedReply) -> list[Report]:
        """A state that ends the reply; `completed` without words leaves it to the chunks."""
        if status.usage is not None:
            expected.usage = status.usage.kept
        if expected.is_over:
            return self._finish(status.chat_id)
        _check_whole(status)
        del self._expected[status.chat_id]
        return [_final(status.chat_id, expected, text=status.text or None, reason=status.reason)]

    def _piece(self, saying: TaskStatus | TaskArtifact, expected: AwaitedReply) -> list[Report]:
        if expected.is_over:
            return []
        if isinstance(saying, TaskArtifact) and saying.append and not expected.has_open(saying.artifact_id):
            raise BadChannelFrame("bad_frame", "append: no artifact of this reply has that artifactId and is open")
        piece: Extra = saying.piece
        number = expected.count(saying.chat_id, size_of_json(piece))
        if isinstance(saying, TaskArtifact):
            expected.keep_open(saying.artifact_id, not saying.last_chunk)
        return [Report(expected.home, ExtraPiece(saying.chat_id, number, piece))]

    def _finish(self, chat_id: str) -> list[Report]:
        return [_final(chat_id, self._expected.pop(chat_id))]


def _check_whole(reply: Reply | TaskStatus) -> None:
    if size_of(reply.text) > MAX_REPLY_BYTES:
        raise TooLarge(reply.chat_id, f"a reply holds at most {MAX_REPLY_BYTES} bytes", is_finished=True)


def _final(chat_id: str, expected: AwaitedReply, text: str | None = None, reason: str = "") -> Report:
    return Report(expected.home, Final(chat_id, expected.pieces, text, str(reason), usage=expected.usage))


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


SOCKET = DescribedSocket(
    path="/channel",
    summary="An agent dials out, registers, is asked, and replies.",
    security=[CHANNEL_TOKEN],
    from_client=[*FROM_AGENT.values()],
    to_client=TO_AGENT,
    payloads={ChatEvent: (Reply, ReplyChunk, TaskStatus, TaskArtifact)},
)
