"""The prompts of one connection: checks their replies, and says for which caller the agent works.

The module does no I/O.

A reply counts only for a chat id that was sent to this socket and is not answered yet. Everything else is
refused with a non-fatal error frame and never reaches a caller.
"""

from collections.abc import Awaitable, Callable, Sequence

from agents.core.ports import Clock
from agents.core.post import ExtraPiece, Final, PostedChunk, PostedPrompt, ReplyMessage
from agents.links.channel.driving import LONGEST_TURN_S, ActingFor, OpenPrompt, find_acting_for
from agents.links.channel.frames import BadChannelFrame
from agents.links.channel.payloads import (
    Reply,
    ReplyChunk,
    ReplyFrame,
    TaskArtifact,
    TaskStatus,
    size_of_json,
)
from agents.models.choices import TurnFailure
from agents.transcript.pieces import (
    MAX_PIECES,
    MAX_REPLY_BYTES,
    ApprovalAsked,
    ApprovalDecided,
    Extra,
    ReportedUsage,
    size_of,
)
from kit.durations import seconds

LATE_REPLY_S = seconds(60.0)
REPLY_GRACE_S = seconds(5.0, at_least_s=1.25)
FORGETS_EVERY_S = 1.0
MAX_CHUNK_BYTES = 65_536


class TooLarge(BadChannelFrame):
    """A reply passed a cap and ends as failed. `is_finished`: the agent will send nothing more of the reply."""

    def __init__(self, chat_id: str, message: str, *, is_finished: bool) -> None:
        super().__init__("reply_too_large", message)
        self.chat_id = chat_id
        self.is_finished = is_finished


class UnknownChat(BadChannelFrame):
    """A reply to a chat id that is not open on this connection."""

    def __init__(self) -> None:
        super().__init__("unknown_chat", "no open prompt of this connection has that chatId")


# Passes messages of a reply to the process that waits for it.
ReportReply = Callable[[str, Sequence[ReplyMessage]], Awaitable[None]]


class Prompts:
    """The open prompts of one connection.

    Two dicts hold each prompt by its chat id. `_unanswered`: until the end of its reply. `_driving`: while the
    agent may work for its caller, in the order in which the prompts were sent.

    An agent works for a caller from the delivery of the prompt until the agent's program has reported the end of
    its turn and the caller waits no more. The prompt of a program without hooks ends a moment after the
    reply; at the latest after 15 minutes. A program queues prompts that it gets while it works: the end of an
    earlier turn does not end a queued prompt.
    """

    def __init__(self, report: ReportReply, clock: Clock) -> None:
        self._report = report
        self._clock = clock
        self._unanswered: dict[str, OpenPrompt] = {}
        self._driving: dict[str, OpenPrompt] = {}
        self._has_hooks = False
        self._knows_turns = False  # a hook of this connection said where a turn begins or ends
        self._is_at_work = False  # from the reports of hooks: a prompt that the agent's owner typed counts, too
        self._forgets_at = 0.0
        # Ids of permission requests that were sent to callers; few, because of MAX_PENDING.
        self._asked: set[str] = set()
        self._decided: set[str] = set()

    def begin(self, prompt: PostedPrompt) -> None:
        """Add a prompt that is about to be sent."""
        now = self._clock()
        if now >= self._forgets_at:
            self._forgets_at = now + FORGETS_EVERY_S
            self._end_old_drives(now)
        # `stops` grows from prompt to prompt, so the last prompt has the most.
        most = self._driving[next(reversed(self._driving))].stops if self._driving else 0
        waits_until = now + prompt.wait_s
        self._unanswered[prompt.chat_id] = self._driving[prompt.chat_id] = OpenPrompt(
            prompt,
            waits_until,
            waits_until,
            now + max(prompt.wait_s, LONGEST_TURN_S),
            ends_with_turn=prompt.tells,
            turn=prompt.chat_id,
            stops=(most if most > 0 else self._is_at_work) + 1,
        )

    def withdraw(self, chat_id: str) -> None:
        """Remove a prompt that was not sent."""
        self._unanswered.pop(chat_id, None)
        self._driving.pop(chat_id, None)

    def resume(self, prompt: PostedPrompt) -> None:
        """Note that the agent may still work, for `wait_s`, on a prompt of an earlier connection.

        The turn of that prompt has ended.
        """
        now = self._clock()
        self._driving[prompt.chat_id] = OpenPrompt(prompt, now, now, now + prompt.wait_s)

    def cancel(self, chat_id: str) -> bool:
        """Cancel a prompt for its caller; False when none is open under that id.

        The end of the reply is still accepted from the agent for as long as before, because it frees the claim.
        """
        if (canceled := self._unanswered.get(chat_id)) is None:
            return False
        canceled.is_wanted = False
        canceled.waited_until = min(canceled.waited_until, self._clock())
        return True

    async def take_reply(self, reply: ReplyFrame) -> bool:
        """Report a piece or the end of a reply; False if the frame was ignored because the reply is already too
        large.

        Raises:
            UnknownChat: this socket was not sent the prompt, or has answered it.
            BadChannelFrame: the reply passes a cap, or the frame is not valid at this point.
        """
        replied = self._unanswered.get(reply.chat_id)
        if replied is None:
            raise UnknownChat
        messages = self._read_reply(reply, replied)
        await self._report(replied.prompt.home, messages)
        return bool(messages)

    def read_reply_for(self, process_id: str, reply: Reply | ReplyChunk) -> Sequence[ReplyMessage]:
        """The messages of a reply that this process waits for; nothing if `take_reply` has to be used."""
        replied = self._unanswered.get(reply.chat_id)
        if replied is None or replied.prompt.home != process_id:
            return ()
        try:
            return self._read_reply(reply, replied)
        except TooLarge:  # `take_reply` raises it again
            return ()

    def _read_reply(self, reply: ReplyFrame, replied: OpenPrompt) -> list[ReplyMessage]:
        """The messages of a piece or the end of a reply. Raises `TooLarge` and `BadChannelFrame`."""
        match reply:
            case Reply():
                is_direct = reply.direct and not replied.pieces
                return [self._finish(replied, reply.text, usage=reply.usage, is_direct=is_direct)]
            case ReplyChunk():
                if reply.usage is not None:
                    replied.usage = reply.usage.kept
                is_counted = reply.text and not replied.is_failed
                messages: list[ReplyMessage] = [_chunk(reply, replied)] if is_counted else []
                if reply.done:
                    messages.append(self._finish(replied))
                return messages
            case TaskStatus() if not reply.is_note:
                # The reply of a `completed` without text is its chunks; of a reply that failed only the end is
                # reported.
                end = () if replied.is_failed else (reply.text or None, reply.reason)
                return [self._finish(replied, *end, usage=reply.usage)]
            case _:
                return [] if replied.is_failed else [_piece(reply, replied)]

    async def ask_caller(self, chat_id: str, asked: ApprovalAsked) -> None:
        """Send a permission request to the caller of a turn, unless its decision came before it.

        Raises:
            TooLarge: with the request, the reply passes a cap.
        """
        if asked.request_id in self._decided:
            self._decided.discard(asked.request_id)
            return
        self._asked.add(asked.request_id)
        await self._add_piece(chat_id, asked)

    async def tell_caller(self, chat_id: str, decided: ApprovalDecided) -> None:
        """Send the caller a decision, which may come before its request. A reply that grows too large fails."""
        if decided.request_id not in self._asked:
            self._decided.add(decided.request_id)
            return
        self._asked.discard(decided.request_id)
        try:
            await self._add_piece(chat_id, decided)
        except TooLarge as large:
            await self.too_large(large)

    async def too_large(self, large: TooLarge) -> None:
        """End a reply that is too large as failed; once the agent has finished the reply, a second `Final` frees
        the claim.
        """
        failed = self._unanswered[large.chat_id]
        failed.is_failed = True
        finals = [_final(failed, reason=TurnFailure.REPLY_TOO_LARGE)]
        if large.is_finished:
            del self._unanswered[large.chat_id]
            finals.append(_final(failed))
        await self._report(failed.prompt.home, finals)

    async def stopped(self) -> None:
        """Note that the agent's program ended a turn; this ends the prompts for which no caller waits.

        A tell ends whether or not the agent replied to it; its reply may come late.
        """
        now = self._clock()
        self._has_hooks = self._knows_turns = True
        self._is_at_work = False
        for one in self._driving.values():
            one.stops -= 1
        over = [chat_id for chat_id, one in self._driving.items() if one.is_over(now)]
        told = [chat_id for chat_id in over if self._driving.pop(chat_id).ends_with_turn]
        for chat_id in told:
            await self.end_told(chat_id)

    async def end_told(self, chat_id: str) -> None:
        """End the turn of a tell. The agent still works for the caller of the tell."""
        if (told := self._unanswered.get(chat_id)) is None:
            return
        # Kept, and forgotten after LATE_REPLY_S: a reply may still follow the end of the turn.
        told.ends_with_turn, told.taken_until = False, self._clock()
        await self._report(told.prompt.home, [_final(told)])

    def end_drive(self, chat_id: str) -> None:
        """End the work on a prompt: the agent answered it by one frame, and does nothing more for its caller."""
        self._driving.pop(chat_id, None)

    async def lost(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Fail the open prompts at once with this reason, because the connection is over."""
        failed, self._unanswered = self._unanswered, {}
        for one in failed.values():
            await self._report(one.prompt.home, [_final(one, reason=reason)])

    def hooked(self, *, begins: bool = False) -> None:
        """Note that the program's hooks report, so that it will report ends of turns. `begins`: it started to
        work.
        """
        self._has_hooks = True
        self._knows_turns = self._knows_turns or begins
        self._is_at_work = self._is_at_work or begins

    def acting_for(self, owner: ActingFor, chat_id: str = "") -> ActingFor:
        """Find the user on whose behalf the agent works now: a caller, else the agent's owner.

        `chat_id`: see `find_acting_for`.
        """
        now = self._clock()
        self._end_old_drives(now)
        return find_acting_for(
            owner, self._driving, chat_id, now, has_hooks=self._has_hooks, knows_turns=self._knows_turns
        )

    def is_idle(self, now: float) -> bool:
        """True if no caller waits for a reply any more."""
        return all(one.taken_until < now or not one.is_wanted for one in self._unanswered.values())

    def forget_old(self, now: float) -> None:
        """Stop expecting replies for which no caller has waited for a minute."""
        forgotten = now - LATE_REPLY_S
        for chat_id in [one for one, late in self._unanswered.items() if late.taken_until < forgotten]:
            del self._unanswered[chat_id]

    def _end_old_drives(self, now: float) -> None:
        self._driving = {chat_id: one for chat_id, one in self._driving.items() if one.drives_until > now}

    async def _add_piece(self, chat_id: str, piece: Extra) -> None:
        """Report a piece that the hub made of an agent's permission request; does nothing if the reply is over."""
        asking = self._unanswered.get(chat_id)
        if asking is not None and asking.is_wanted and not asking.is_failed:
            number = _count(asking, size_of_json(piece))
            await self._report(asking.prompt.home, [ExtraPiece(chat_id, number, piece)])

    def _finish(
        self,
        replied: OpenPrompt,
        text: str | None = None,
        reason: str = "",
        *,
        usage: ReportedUsage | None = None,
        is_direct: bool = False,
    ) -> Final:
        """Make the `Final` of a reply that the agent ended. `text` None: the pieces are the reply.

        Raises:
            TooLarge: the text passes a cap.
        """
        chat_id = replied.prompt.chat_id
        if usage is not None:
            replied.usage = usage.kept
        if text is not None and size_of(text) > MAX_REPLY_BYTES:
            raise TooLarge(chat_id, f"a reply holds at most {MAX_REPLY_BYTES} bytes", is_finished=True)
        del self._unanswered[chat_id]
        replied.is_answered = True
        # A program without hooks never reports the end of its turn, and
        # may act a moment longer for this caller.
        if not self._has_hooks:
            replied.drives_until = self._clock() + REPLY_GRACE_S
        return Final(chat_id, replied.pieces, text, reason, direct=is_direct, usage=replied.usage)


def _chunk(chunk: ReplyChunk, replied: OpenPrompt) -> PostedChunk:
    size = size_of(chunk.text)
    if size > MAX_CHUNK_BYTES:
        raise TooLarge(chunk.chat_id, f"a chunk holds at most {MAX_CHUNK_BYTES} bytes", is_finished=chunk.done)
    return PostedChunk(chunk.chat_id, _count(replied, size, is_finished=chunk.done), chunk.text)


def _piece(saying: TaskStatus | TaskArtifact, replied: OpenPrompt) -> ExtraPiece:
    """A note, or an artifact, as a piece of the reply."""
    piece: Extra = saying.piece
    if isinstance(saying, TaskStatus):
        return ExtraPiece(saying.chat_id, _count(replied, size_of_json(piece)), piece)
    others = replied.open_artifacts - {saying.artifact_id}
    if saying.append and others == replied.open_artifacts:
        raise BadChannelFrame("bad_frame", "append: no artifact of this reply has that artifactId and is open")
    number = _count(replied, size_of_json(piece))
    replied.open_artifacts = others if saying.last_chunk else others | {saying.artifact_id}
    return ExtraPiece(saying.chat_id, number, piece)


def _count(replied: OpenPrompt, size: int, *, is_finished: bool = False) -> int:
    """Count one more piece of that size; returns the number of the piece.

    Raises:
        TooLarge: with this piece, the reply passes a cap.
    """
    replied.size_bytes += size
    chat_id = replied.prompt.chat_id
    if replied.pieces >= MAX_PIECES:
        raise TooLarge(chat_id, f"a reply has at most {MAX_PIECES} pieces", is_finished=is_finished)
    if replied.size_bytes > MAX_REPLY_BYTES:
        raise TooLarge(chat_id, f"a reply holds at most {MAX_REPLY_BYTES} bytes", is_finished=is_finished)
    replied.pieces += 1
    return replied.pieces - 1


def _final(prompt: OpenPrompt, reason: str = "") -> Final:
    return Final(prompt.prompt.chat_id, prompt.pieces, reason=str(reason), usage=prompt.usage)
