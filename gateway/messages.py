"""Messages that a client sends to an agent: each is a turn, and its end is the reply or an error."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec
from django.db import DatabaseError

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget, find_agent, get_peer
from agents.core.dispatch import Dispatcher
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.core.types import Ask, SettledTurn, Source, Target
from agents.core.waiting import RunningTurn
from agents.links.channel.requests import ActingFor
from agents.models import Session
from agents.models.choices import Outcome, Surface
from agents.transcript.access import NotAllowed
from agents.transcript.mentions import MAX_FILES, mentions
from agents.transcript.pieces import ArtifactPiece, Part
from gateway.envelope import Envelope, Json
from gateway.errors import ErrorCode, FrameRefused, refuse_denied, refuse_failed
from gateway.frame_log import FrameNote
from gateway.frames import error_frame, make_frame, new_id
from gateway.permissions import check_peers
from gateway.seat import GATEWAY_LINK, carry_envelope, name_of_asker
from kit import trace
from kit.async_db import db_call
from kit.ids import time_ordered

MOST_OPEN = 200  # messages of one connection
LONGEST_WAIT_S = 600.0
FINDING_AT_ONCE = 4  # a flood of messages must not starve the rest of the process of pool threads
REFUSALS = (AmbiguousPeer, NoSuchTarget, NotAllowed, NotPublished, FileGone, Denied, Unavailable, DatabaseError)

Result = TypeVar("Result")
Say = Callable[[Json], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Addressee:
    """Who a message is for. `takes_envelopes`: it sits at this gateway. `owner`: its user's login."""

    target: Target
    takes_envelopes: bool
    owner: str
    name: str


class Sender(NamedTuple):
    """Who sends a message: the login of the connection's user, and the name of its seat, if it has one.

    `only_agent`: the handle of the one agent that the connection's token is for; empty: it is for all.
    """

    login: str
    seat: str
    only_agent: str = ""

    @property
    def name(self) -> str:
        """The name by which an agent of the same owner answers."""
        return self.seat or name_of_asker(self.login)

    def carry(self, envelope: Envelope, target: Target) -> tuple[Part, ...]:
        """The envelope for a seat. The agent of another owner is `@owner/name`, as in discovery."""
        is_mine = target.handle.partition("/")[0].lower() == self.login.lower()
        if self.seat and is_mine:
            return carry_envelope(envelope, self.seat, "")
        return carry_envelope(envelope, f"@{self.login}/{self.seat}" if self.seat else self.name, self.login)


class MessageRouter:
    """Asks what the clients of this process send to agents."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._finding = asyncio.Semaphore(FINDING_AT_ONCE)

    async def read(self, function: Callable[..., Result], *args: object) -> Result:
        """Read the database for a client, with few others at once."""
        async with self._finding:
            return await db_call(function)(*args)

    async def begin(self, envelope: Envelope, behalf: ActingFor, sender: Sender, wait_s: float) -> RunningTurn:
        """Start the turn of a message.

        Raises:
            FrameRefused: nothing was sent.
        """
        text = _text_of(envelope)
        if len(mentions(text)) > MAX_FILES:
            raise FrameRefused(ErrorCode.INVALID_CONTENT, f"the message names over {MAX_FILES} files")
        asker = behalf.asker
        try:
            found = await self.read(get_allowed, envelope.agent, asker.user_id, sender)
            ask = Ask(
                chat_id=time_ordered(),
                target=found.target,
                caller_id=asker.user_id,
                caller_login=asker.login,
                surface=Surface.ROUTE,
                question=text,
                wait_s=wait_s,
                tells=not envelope.wants_response,
                source=Source(behalf.session_id, peer_login=found.target.handle) if behalf.session_id else None,
                chain=asker.chain,
                files=tuple(mentions(text)),
                message_id=envelope.id,
                context_id=envelope.session_id,
                parts=sender.carry(envelope, found.target) if found.takes_envelopes else _parts_of(envelope),
                traceparent=trace.follow(asker.traceparent),
                parent=asker.parent,
            )
            return await self._dispatcher.ask(ask, _do_nothing)
        except REFUSALS as refusal:
            raise refuse_denied(refusal) from None


class OpenMessages:
    """The messages of one connection whose replies it waits for: started in order, awaited all at once."""

    def __init__(self, router: MessageRouter, say: Say) -> None:
        self._router = router
        self._say = say
        self._open: set[str] = set()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_order = asyncio.Lock()

    def enter(self, envelope: Envelope) -> str:
        """Take a message; the id by which its reply is tied to it.

        Raises:
            FrameRefused: 1005 when too many are open, 2005 when its correlation id is in use.
        """
        if len(self._open) >= MOST_OPEN:
            text = f"at most {MOST_OPEN} messages of a connection are open at once"
            raise FrameRefused(ErrorCode.RATE_LIMITED, text, retry_after_ms=1000)
        key = envelope.correlation_id if envelope.wants_response else ""
        key = key or new_id()
        if key in self._open:
            text = "a message with this correlation id waits for its reply"
            raise FrameRefused(ErrorCode.INVALID_CONTENT, text, reason="correlation_in_use")
        self._open.add(key)
        return key

    async def run(
        self, key: str, envelope: Envelope, behalf: ActingFor, sender: Sender, wait_s: float, note: FrameNote
    ) -> None:
        """Ask, wait and answer. `note`: ends when the message is on its way; its turn has the rest."""
        try:
            async with self._in_order:
                running = await self._router.begin(envelope, behalf, sender, wait_s)
            note.finish()
            waited: list[asyncio.Future[Any]] = [running.settled, self._gone]
            # `wait` cancels neither future: others wait for both.
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if running.settled.done():
                await self._answer(key, envelope, running, running.settled.result(), sender.name)
        except FrameRefused as refused:
            note.finish(refused)
            refused.correlation_id, refused.frame_id = envelope.correlation_id or key, envelope.id
            await self._say(error_frame(refused))
        finally:
            self._open.discard(key)
            note.fail()

    def end(self) -> None:
        """The client is gone; the turns that it began go on."""
        if not self._gone.done():
            self._gone.set_result(None)

    async def _answer(
        self, key: str, envelope: Envelope, running: RunningTurn, settled: SettledTurn, sender: str
    ) -> None:
        if settled.outcome is not Outcome.COMPLETED:
            raise refuse_failed(settled.reason, settled.own_words)
        if not envelope.wants_response:
            return
        metadata = {"correlationId": key} | ({"parentId": envelope.id} if envelope.id else {})
        if thread := envelope.metadata.get("threadId"):
            metadata["threadId"] = thread
        session = {"sessionId": envelope.session_id} if envelope.session_id else {}
        content = {"role": "agent", "content": _reply_of(running, settled)}
        head = {"from": envelope.agent, "agent": sender, "id": new_id(), **session}
        await self._say(make_frame("message", content, metadata) | head)


def get_allowed(name: str, user_id: int, sender: Sender) -> Addressee:
    """As `find_addressee`, of those that the sender's token is for and whose lists of peers have the sender.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: as `find_addressee`.
        FrameRefused: 5004, by the list of peers of one of both.
    """
    found = find_addressee(name, user_id)
    if sender.only_agent and (found.target.agent_id is None or found.target.handle.lower() != sender.only_agent):
        raise NoSuchTarget
    check_peers(sender.login, sender.seat, found.owner, found.name)
    return found


def find_addressee(name: str, user_id: int) -> Addressee:
    """The agent of a name for a user: `name`, `@owner/name`, or the handle `@owner/slug` of a published agent.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: there is none that the user may ask.
    """
    published = find_agent(name.removeprefix("@"), user_id) if name.startswith("@") else None
    if published is None:
        peer = get_peer(name, user_id)
        owner = peer.target.handle.rpartition("/")[0]
        return Addressee(peer.target, peer.session.link == GATEWAY_LINK, owner, peer.session.routing_name)
    sessions = Session.objects.filter(pk=published.session_id)
    link, owner, routing_name = sessions.values_list("link", "owner__login", "routing_name").get()
    return Addressee(published, link == GATEWAY_LINK, owner, routing_name)


def _text_of(envelope: Envelope) -> str:
    content = envelope.content["content"]
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def _parts_of(envelope: Envelope) -> tuple[Part, ...]:
    content = envelope.content["content"]
    return () if isinstance(content, str) else (Part(data=content),)


def _reply_of(running: RunningTurn, settled: SettledTurn) -> object:
    """The reply as a seat gave it: text, or the object that it sent."""
    if settled.text:
        return settled.text
    pieces = [one for one in running.pieces if isinstance(one, ArtifactPiece)]
    found = [part.data for piece in pieces for part in piece.parts if part.data is not msgspec.UNSET]
    return found[-1] if found else ""


async def _do_nothing(settled: SettledTurn) -> None:
    """Does nothing: the reply is sent by the task that waits for it."""
