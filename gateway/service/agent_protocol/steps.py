"""Runs a step of a task: one ask to its agent, whose reply is stored whether or not its client still waits."""

import asyncio
import base64
from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
from msgspec import UNSET

from accounts.authn import Identity
from agents.core.ask_starter import NOT_ASKED
from agents.core.types import SettledTurn, Target
from agents.core.waiting import RunningTurn, text_of
from agents.models.choices import Interruption, Outcome
from agents.transcript.pieces import ArtifactPiece, LastWords, Part, Piece, joined_texts, question_of, text_in
from gateway.service.agent_protocol import store
from gateway.service.agent_protocol.shapes import ApiStep, RequestBody, files_of
from gateway.service.agent_protocol.store import BegunStep
from gateway.service.client import Gateway
from gateway.service.messages.addressing import NewMessage, Sender, find_addressee
from gateway.service.messages.messages import LONGEST_WAIT_S, MessageToAsk, MustWait
from gateway.service.seats.seat import act_without_seat
from gateway.wire.errors import FrameRefused, refuse_denied, refuse_failed
from gateway.wire.frames import Envelope
from kit.async_db import db_call
from kit.tasks import start_apart

ASKS_INPUT = frozenset(Interruption)


class StepRunner:
    """Asks the agents of tasks. `reply_wait_s`: how long an agent may take that has no wait of its own."""

    def __init__(self, gateway: Gateway, reply_wait_s: float) -> None:
        self._gateway = gateway
        self._reply_wait_s = reply_wait_s

    async def find_agent(self, name: str, user_id: int) -> Target:
        """The agent of a name for a user.

        Raises:
            FrameRefused: there is none that the user may ask.
        """
        try:
            return (await self._gateway.router.read(find_addressee, name, user_id)).target
        except NOT_ASKED as refusal:
            raise refuse_denied(refusal) from None

    async def begin(
        self, identity: Identity, task_id: UUID, wanted: RequestBody, traceparent: str
    ) -> asyncio.Future[ApiStep | FrameRefused]:
        """Ask; the future of the step, once its reply is stored, or of the reason why there is none.

        Raises:
            FrameRefused, RequestRefused, QuotaExceeded: nothing was sent.
        """
        user_id, login = identity.user_id, identity.login
        task = await db_call(store.find_task)(user_id, task_id)
        target = await self.find_agent(task.agent, user_id)
        wait_s = min(float(target.wait_s or self._reply_wait_s), LONGEST_WAIT_S)
        begun = await db_call(store.begin_step)(user_id, task_id, wanted, wait_s)
        behalf = act_without_seat(user_id, login, traceparent)
        asked = NewMessage(make_message(begun), behalf, Sender.of(identity), wait_s)
        parts = parts_of(begun)
        question = MessageToAsk(question_of(parts, "") or begun.step.input, parts, begun.step.agent_task_id)
        try:
            message = await self._gateway.router.begin(asked.envelope.id, asked, question)
        except (FrameRefused, MustWait) as refused:
            await db_call(store.drop_step)(begun)
            raise (refused.refused if isinstance(refused, MustWait) else refused) from None
        return start_apart(self._gateway.link.start, self._finish(begun, message.running), "step")

    async def _finish(self, begun: BegunStep, running: RunningTurn) -> ApiStep | FrameRefused:
        """Store what came of a step; the step, or why there is no reply."""
        await db_call(store.mark_sent)(begun, running.turn.ask.chat_id)
        settled = await asyncio.shield(running.settled)
        if settled.outcome is not Outcome.COMPLETED:
            await db_call(store.drop_step)(begun)
            return refuse_failed(settled.reason, settled.own_words)
        asks_input = settled.reason in ASKS_INPUT
        output, files = output_of(settled, running.pieces), list(files_of(running.pieces))
        return await db_call(store.finish_step)(begun, output, asks_input, files)


def make_message(begun: BegunStep) -> Envelope:
    """The message that a step is: its text, and with uploads what a seat is shown of parts."""
    parts = [msgspec.to_builtins(part) for part in parts_of(begun)]
    content = {"text": begun.step.input, "parts": parts} if parts else begun.step.input
    return Envelope(
        type="message",
        content={"role": "user", "content": content},
        metadata={"requiresResponse": True, "correlationId": str(begun.step.public_id)},
        id=str(begun.step.public_id),
        agent=begun.task.agent,
        session_id=str(begun.task.public_id),
        extra={},
    )


def parts_of(begun: BegunStep) -> tuple[Part, ...]:
    """The question and the uploads that come with it; nothing for a question that is text alone."""
    if not begun.uploads:
        return ()
    files = [
        Part(
            raw=base64.b64encode(bytes(one.data)).decode(),
            media_type=one.mime,
            filename=f"{one.relative_path}/{one.file_name}" if one.relative_path else one.file_name,
        )
        for one in begun.uploads
    ]
    return (Part(text=begun.step.input), *files)


def output_of(settled: SettledTurn, pieces: Sequence[Piece]) -> str:
    """The reply as text: with what the agent asks back, or the data that it answered with."""
    if settled.reason in ASKS_INPUT:
        said = text_of(pieces)
        asked = "".join(text_in(one.parts) for one in pieces if isinstance(one, LastWords)) or settled.text
        return asked if asked.startswith(said) else joined_texts([said, asked])
    if settled.text:
        return settled.text
    data = [part.data for part in _parts_besides(pieces) if part.data is not UNSET]
    return msgspec.json.encode(data[-1]).decode() if data else ""


def _parts_besides(pieces: Sequence[Piece]) -> Iterator[Part]:
    for piece in pieces:
        if isinstance(piece, ArtifactPiece) and piece.lead is None:
            yield from piece.parts
