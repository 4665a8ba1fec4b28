"""The link over agents' WebSockets: sends prompts and receives replies, also through other processes.

This module knows no frame. Each socket protocol of agents has a consumer that is a `ServedSocket`; the consumer
attaches itself here once its connection is registered (`agents.core.registration`): ids of connections are unique
over all protocols. The process therefore finds all sockets of its agents in one place (docs/adr/0124).
"""

import asyncio
import hmac
import logging
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterable
from typing import Any, Protocol

from msgspec.structs import replace

from accounts.sealing import derive_key
from agents.core import presence
from agents.core.errors import NoReceipt, NotDelivered
from agents.core.post import (
    Evict,
    ExtraPiece,
    Final,
    FinalReceived,
    Hook,
    Message,
    Post,
    PostedChunk,
    PostedPrompt,
    PromptRefused,
    PromptTaken,
    ReplyMessage,
    Withdrawn,
)
from agents.core.types import Ask, OpenTurn
from agents.core.waiting import RunningTurn, WaitingTurns
from agents.models.choices import TurnFailure
from agents.transcript.announcements import AgentFrame, CloseAgent, PermissionOutcome
from kit.async_db import db_call
from kit.durations import seconds
from kit.newest import NewestEntries
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

RECEIPT_WITHIN_S = seconds(4.0, at_least_s=2.0)  # so that an ask whose prompt was lost on its way ends within 5
REGISTERING_AT_ONCE = 2  # a thousand agents that reconnect at once must leave database connections for the ledger
REMOVED_AT_ONCE = 100
FINAL_TRIES = 20
FINAL_AGAIN_S = 1.0
MAX_EARLY_EVICTIONS = 1_000
CONTEXT_IDS = b"clawbridge context ids of agents"
CONTEXT_ID_BYTES = 16

ToSocket = Evict | AgentFrame | PermissionOutcome | Hook | CloseAgent | Withdrawn


class ServedSocket(Protocol):
    """One registered agent socket of this process."""

    may_be_direct: bool  # True if the agent may answer with a message instead of a task

    @property
    def session_id(self) -> int:
        """The id of the session whose agent uses the socket."""

    def prompt_now(self, prompt: PostedPrompt) -> bool:
        """Send the question without a coroutine; False if `prompt` has to be used, and nothing was sent."""

    async def prompt(self, prompt: PostedPrompt) -> None:
        """Send the question; its reply is reported to `prompt.home`.

        Raises:
            NotDelivered: the socket is closed; nothing was sent.
        """

    async def take(self, message: ToSocket) -> None:
        """Handle a message for this socket: close, forward a frame, or note a hook report."""

    async def close_from_hub(
        self, code: int, *, bye: str = "", retry: bool = True, reason: TurnFailure = TurnFailure.CHANNEL_LOST
    ) -> None:
        """Close the socket from the hub's side, with a bye frame if `bye` is given.

        `reason`: the reason with which its open prompts fail, in all processes that wait for them.
        """

    async def refuse(self, code: str, message: str) -> None:
        """Close the socket and tell the agent not to reconnect."""

    def is_idle(self, now: float) -> bool:
        """True if no caller waits for its replies any more."""

    def is_due(self, now: float) -> bool:
        """True if `check_alive` has something to do."""

    async def check_alive(self, now: float) -> None:
        """Send a ping when it is due; close the socket of an agent that was silent for too long."""


class SocketLink:
    """Reaches agents whose sockets this process holds, and through the post agents at other processes."""

    def __init__(self, *, process_id: str, post: Post, waiting: WaitingTurns) -> None:
        self._me = process_id
        self._post = post
        self._waiting = waiting
        self._context_key = derive_key(CONTEXT_IDS)
        self._sockets: dict[int, ServedSocket] = {}
        # A newer connection evicts an older one as soon as its row is committed; the older one's row may be
        # committed too, but its socket not attached yet. Its `Evict` waits here.
        self._early = NewestEntries[int, Evict](MAX_EARLY_EVICTIONS)
        self._receipts: dict[str, asyncio.Future[PromptTaken | PromptRefused]] = {}
        # The finals of each chat whose receipt has not come, oldest first: an agent may send a second final.
        self._finals: defaultdict[str, deque[asyncio.Event]] = defaultdict(deque)
        self._tasks = TaskSet()
        self.refuses_far_prompts = False
        self.registering = asyncio.Semaphore(REGISTERING_AT_ONCE)
        self._closed: list[int] = []  # connections whose rows are to be removed
        self._removing = asyncio.Lock()

    @property
    def sessions(self) -> dict[int, int]:
        """The connections this process holds, each with its session."""
        return {connection_id: socket.session_id for connection_id, socket in self._sockets.items()}

    @property
    def sockets(self) -> list[ServedSocket]:
        """The sockets this process holds."""
        return list(self._sockets.values())

    def socket(self, connection_id: int) -> ServedSocket | None:
        """The socket of a connection, if this process holds it."""
        return self._sockets.get(connection_id)

    def attach(self, connection_id: int, socket: ServedSocket) -> None:
        """Add a registered socket; a newer connection may have replaced it before this call."""
        self._sockets[connection_id] = socket
        if (evict := self._early.pop(connection_id, None)) is not None:
            self._tasks.start(socket.take(evict), name="to agent")

    def detach(self, connection_id: int) -> None:
        """Remove a closed socket."""
        self._sockets.pop(connection_id, None)

    async def remove_connection(self, connection_id: int) -> None:
        """Remove the row of a closed socket, in one transaction with those of sockets that close meanwhile."""
        self._closed.append(connection_id)
        async with self._removing, self.registering:
            some, self._closed = self._closed[:REMOVED_AT_ONCE], self._closed[REMOVED_AT_ONCE:]
            try:
                if some:
                    await db_call(presence.remove_connections)(some)
            except BaseException:
                self._closed[:0] = some  # for the next one that waits
                raise

    def deliver_now(self, running: RunningTurn) -> bool:
        """Write the prompt to a socket of this process that takes it at once. See `agents.core.ports.Link`."""
        turn = running.turn
        socket = self._sockets.get(turn.connection_id) if turn.link_process == self._me else None
        if socket is None or not socket.prompt_now(self._prompt_of(running)):
            return False
        if not socket.may_be_direct:
            running.becomes_task()
        return True

    async def deliver(self, running: RunningTurn) -> None:
        """Deliver a prompt. See `agents.core.ports.Link`."""
        prompt = self._prompt_of(running)
        if running.turn.link_process == self._me:
            may_be_direct = await self._send_to_socket(prompt)
        else:
            may_be_direct = await self._deliver_far(running.turn.link_process, prompt)
        # Without the feature `direct_message` the answer is a task: a
        # stream need not wait to learn which it is.
        if not may_be_direct:
            running.becomes_task()

    def _prompt_of(self, running: RunningTurn) -> PostedPrompt:
        turn, ask = running.turn, running.ask
        return PostedPrompt(
            chat_id=ask.chat_id,
            connection_id=turn.connection_id,
            home=self._me,
            asker=ask.caller_login,
            text=turn.text,
            wait_s=ask.wait_s,
            asker_id=ask.caller_id,
            isolated=turn.isolated,
            chain=(*ask.chain, ask.target.session_id),
            tells=ask.tells,
            task_id=ask.task_id,
            context_id=self._name_context(ask),
            parts=ask.parts,
            traceparent=ask.traceparent,
            message_id=ask.message_id,
            is_own=turn.is_own,
        )

    async def withdraw(self, turn: OpenTurn) -> None:
        """Inform the agent that its caller canceled. See `agents.core.ports.Link`."""
        await self.send(turn.link_process, Withdrawn(turn.connection_id, turn.ask.chat_id))

    def report_here(self, messages: Iterable[ReplyMessage]) -> None:
        """Do what `report` does, for a reply that this process waits for."""
        for message in messages:
            self._waiting.take(message)

    async def report(self, home: str, messages: Iterable[ReplyMessage]) -> None:
        """Pass messages of a reply to a socket of this process on to the process that waits for the reply."""
        if home == self._me:
            self.report_here(messages)
            return
        # One after the other: the home fails a turn whose pieces arrive out of order.
        for message in messages:
            if not isinstance(message, Final):
                await self._post.pass_on(home, message)
            else:
                await self._send_final(home, message)

    async def send(self, process_id: str, message: ToSocket) -> None:
        """Send a message to the socket of a connection in any process; it may be lost."""
        if process_id == self._me:
            await self.take(message)
        else:
            await self._post.send(process_id, message)

    async def take(self, message: Message) -> None:
        """Handle a message from another process without blocking: slow work runs in a task."""
        match message:
            case PostedPrompt():
                self._tasks.start(self._take_prompt(message), name=f"prompt {message.chat_id}")
            case PromptTaken() | PromptRefused():
                receipt = self._receipts.get(message.chat_id)
                # A receipt without a waiter came after RECEIPT_WITHIN_S, and its turn has failed already.
                if receipt is not None and not receipt.done():
                    receipt.set_result(message)
            case PostedChunk() | ExtraPiece():
                self._waiting.take(message)
            case Final():
                # Before the `FinalReceived`: this process must not lose a `Final` that it has confirmed.
                self._waiting.take(message)
                self._tasks.start(self._post.send(message.reply_to, FinalReceived(message.chat_id)), name="got")
            case FinalReceived():
                if waiting := self._finals.get(message.chat_id):
                    waiting[0].set()
                    self._forget_final(message.chat_id, waiting[0])
            case Evict() | AgentFrame() | PermissionOutcome() | Hook() | CloseAgent() | Withdrawn():
                if socket := self._sockets.get(message.connection_id):
                    self._tasks.start(socket.take(message), name="to agent")
                elif isinstance(message, Evict):
                    # The socket is not attached yet, or closed.
                    self._early[message.connection_id] = message

    def check_sockets(self, now: float) -> None:
        """Run the timers of the sockets; call it about once a second."""
        for socket in self._sockets.values():
            if socket.is_due(now):
                self._tasks.start(socket.check_alive(now), name="check socket")

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Run something for a socket in the background."""
        self._tasks.start(work, name)

    async def close(self) -> None:
        """Stop what is still being sent."""
        await self._tasks.cancel()

    async def _send_to_socket(self, prompt: PostedPrompt) -> bool:
        """Send the prompt to the socket; returns whether the reply may be a direct message."""
        socket = self._sockets.get(prompt.connection_id)
        # Late in a drain, prompts from other processes would keep the socket from becoming idle.
        if socket is None or (self.refuses_far_prompts and prompt.home != self._me):
            raise NotDelivered
        await socket.prompt(prompt)
        return socket.may_be_direct

    async def _take_prompt(self, prompt: PostedPrompt) -> None:
        receipt: PromptTaken | PromptRefused
        try:
            async with asyncio.timeout(RECEIPT_WITHIN_S):
                receipt = PromptTaken(prompt.chat_id, await self._send_to_socket(prompt))
        except (NotDelivered, TimeoutError):  # the server writes at once or waits with nothing written
            receipt = PromptRefused(prompt.chat_id)
        # If the receipt is lost, the home fails the turn and keeps it counted, because the prompt may have been
        # sent.
        await self._post.send(prompt.home, receipt)

    async def _deliver_far(self, process_id: str, prompt: PostedPrompt) -> bool:
        """Send once and wait for the receipt; without one the prompt may have been delivered, so its budget is
        not returned.
        """
        # Before sending: the receipt may arrive while `send` still waits for Redis.
        receipt = self._receipts[prompt.chat_id] = asyncio.get_running_loop().create_future()
        try:
            if not await self._post.send(process_id, prompt):
                raise NotDelivered
            async with asyncio.timeout(RECEIPT_WITHIN_S):
                taken = await receipt
        except TimeoutError:
            raise NoReceipt from None
        finally:
            del self._receipts[prompt.chat_id]
        if not isinstance(taken, PromptTaken):
            raise NotDelivered
        return taken.may_be_direct

    async def _send_final(self, home: str, final: Final) -> None:
        addressed = replace(final, reply_to=self._me)
        # Before sending, for the same reason as a receipt.
        got = asyncio.Event()
        self._finals[final.chat_id].append(got)
        # That no process received it proves nothing: the home may be resubscribing.
        await self._post.send(home, addressed)
        self._tasks.start(self._until_got(home, addressed, got), name=f"final {final.chat_id}")

    async def _until_got(self, home: str, final: Final, got: asyncio.Event) -> None:
        try:
            for _ in range(FINAL_TRIES):
                try:
                    async with asyncio.timeout(FINAL_AGAIN_S):
                        await got.wait()
                        return
                except TimeoutError:
                    # Safe to repeat: the first ending of a turn stands, and a claim
                    # that is free is not released again.
                    await self._post.send(home, final)
        finally:
            self._forget_final(final.chat_id, got)

    def _forget_final(self, chat_id: str, got: asyncio.Event) -> None:
        """Remove a final from those whose receipt has not come."""
        waiting = self._finals.get(chat_id)
        if waiting and got in waiting:
            waiting.remove(got)
            if not waiting:
                del self._finals[chat_id]

    def _name_context(self, ask: Ask) -> str:
        """The agent's name for the conversation: callers choose their context ids, and two may choose the same.

        The names are opaque, and change with Django's secret key.
        """
        if not ask.context_id:
            return ""
        asked = f"agent {ask.target.agent_id}" if ask.target.agent_id else f"session {ask.target.session_id}"
        name = f"{asked} {ask.caller_id} {ask.context_id}"
        return hmac.digest(self._context_key, name.encode(), "sha256")[:CONTEXT_ID_BYTES].hex()
