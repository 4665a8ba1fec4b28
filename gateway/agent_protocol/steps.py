"""Runs a step of a task: one ask to its agent, whose reply is stored whether or not its client still waits."""

import asyncio
import base64
from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
from msgspec import UNSET

from accounts.authn import Identity
from agents.core.dispatch import Dispatcher
from agents.core.types import Ask, SettledTurn, Target
from agents.core.waiting import RunningTurn, text_of
from agents.models.choices import Interruption, Outcome, Surface
from agents.transcript.pieces import ArtifactPiece, LastWords, Part, Piece, joined_texts, text_in
from gateway.agent_protocol import store
from gateway.agent_protocol.files import files_of
from gateway.agent_protocol.shapes import ApiStep, RequestBody
from gateway.agent_protocol.store import BegunStep
from gateway.errors import FrameRefused, refuse_denied, refuse_failed
from gateway.http import Start, start_apart
from gateway.messages import LONGEST_WAIT_S, REFUSALS, find_addressee
from kit import trace
from kit.async_db import db_call
from kit.ids import time_ordered

ASKS_INPUT = frozenset(Interruption)


class StepRunner:
    """Asks the agents of tasks. `start`: runs what stores a reply; `reply_wait_s`: how long an agent may take."""

    def __init__(self, dispatcher: Dispatcher, start: Start, reply_wait_s: float) -> None:
        self._dispatcher = dispatcher
        self._start = start
        self._reply_wait_s = min(reply_wait_s, LONGEST_WAIT_S)

    async def check_agent(self, name: str, user_id: int) -> Target:
        """The agent of a name for a user.

        Raises:
            FrameRefused: there is none that the user may ask.
        """
        try:
            return (await db_call(find_addressee)(name, user_id)).target
        except REFUSALS as refusal:
            raise refuse_denied(refusal) from None

    async def begin(
        self, identity: Identity, task_id: UUID, wanted: RequestBody, traceparent: str
    ) -> asyncio.Future[ApiStep | FrameRefused]:
        """Ask; the future of the step, once its reply is stored, or of the reason why there is none.

        Raises:
            FrameRefused, RequestRefused, QuotaExceeded: nothing was sent.
        """
        task = await db_call(store.find_task)(identity.user_id, task_id)
        target = await self.check_agent(task.agent, identity.user_id)
        wait_s = min(float(target.wait_s or self._reply_wait_s), LONGEST_WAIT_S)
        chat_id = time_ordered()
        begun = await db_call(store.begin_step)(identity.user_id, task_id, wanted, chat_id, wait_s)
        ask = Ask(
            chat_id=chat_id,
            target=target,
            caller_id=identity.user_id,
            caller_login=identity.login,
            surface=Surface.GATEWAY,
            question=begun.step.input,
            wait_s=wait_s,
            task_id=begun.step.agent_task_id,
            context_id=str(begun.task.public_id),
            message_id=str(begun.step.public_id),
            parts=parts_of(begun),
            traceparent=trace.follow(traceparent),
        )
        try:
            running = await self._dispatcher.ask(ask, _do_nothing)
        except REFUSALS as refusal:
            await db_call(store.drop_step)(begun)
            raise refuse_denied(refusal) from None
        return start_apart(self._start, self._finish(begun, running), "step")

    async def _finish(self, begun: BegunStep, running: RunningTurn) -> ApiStep | FrameRefused:
        """Store what came of a step; the step, or why there is no reply."""
        await db_call(store.mark_sent)(begun.uploads)
        settled = await asyncio.shield(running.settled)
        if settled.outcome is not Outcome.COMPLETED:
            await db_call(store.drop_step)(begun)
            return refuse_failed(settled.reason, settled.own_words)
        asks_input = settled.reason in ASKS_INPUT
        output, files = output_of(settled, running.pieces), list(files_of(running.pieces))
        return await db_call(store.finish_step)(begun, output, asks_input, files)


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


async def _do_nothing(settled: SettledTurn) -> None:
    """Does nothing: the reply is stored by the task that waits for it."""
