"""Runs a step of a task: one ask to its agent, whose reply is stored whether or not its client still waits."""

import asyncio
import base64
from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
from msgspec import UNSET

from accounts.authn import Identity
from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn, text_of
from agents.models.choices import Interruption, Outcome
from agents.transcript.pieces import ArtifactPiece, LastWords, Part, Piece, joined_texts, question_of, text_in
from gateway.service import protocol_tasks
from gateway.service.client import Gateway
from gateway.service.messages import MessageToAsk
from gateway.service.protocol_shapes import ApiStep, RequestBody, files_of
from gateway.service.protocol_tasks import BegunStep
from gateway.wire.errors import FrameRefused, failed_turn_error
from kit.async_db import db_call
from kit.tasks import start_apart

ASKS_INPUT = frozenset(Interruption)


class StepRunner:
    """Asks the agents of tasks. `reply_wait_s`: how long an agent may take that has no wait of its own."""

    def __init__(self, gateway: Gateway, reply_wait_s: float) -> None:
        self.router = gateway.router
        self._start = gateway.link.start
        self._reply_wait_s = reply_wait_s

    async def begin(
        self, identity: Identity, task_id: UUID, wanted: RequestBody, traceparent: str
    ) -> asyncio.Future[ApiStep | FrameRefused]:
        """Ask; the future of the step, once its reply is stored, or of the reason why there is none.

        Raises:
            FrameRefused, RequestRefused, QuotaExceeded: nothing was sent.
        """
        router, task = self.router, await db_call(protocol_tasks.find_task)(identity.user_id, task_id)
        found = await router.find_addressee(task.agent, identity.user_id)
        wait_s = found.reply_wait_s(self._reply_wait_s)
        begun = await db_call(protocol_tasks.begin_step)(identity.user_id, task_id, wanted, wait_s)
        parts = parts_of(begun)
        text = question_of(parts, "") or begun.step.input
        try:
            running = await router.ask(
                identity,
                task.agent,
                MessageToAsk(text, parts, begun.step.agent_task_id),
                message_id=str(begun.step.public_id),
                session_id=str(begun.task.public_id),
                wait_s=wait_s,
                traceparent=traceparent,
            )
        except FrameRefused:
            await db_call(protocol_tasks.drop_step)(begun)
            raise
        return start_apart(self._start, self._finish(begun, running), "step")

    async def _finish(self, begun: BegunStep, running: RunningTurn) -> ApiStep | FrameRefused:
        """Store what came of a step; the step, or why there is no reply."""
        await db_call(protocol_tasks.mark_sent)(begun, running.ask.chat_id)
        settled = await asyncio.shield(running.settled)
        if settled.outcome is not Outcome.COMPLETED:
            await db_call(protocol_tasks.drop_step)(begun)
            return failed_turn_error(settled.reason, settled.own_words)
        asks_input = settled.reason in ASKS_INPUT
        output, files = output_of(settled, running.pieces), list(files_of(running.pieces))
        return await db_call(protocol_tasks.finish_step)(begun, output, asks_input, files)


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
