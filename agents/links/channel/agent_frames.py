"""Handles the frames of an agent: its registration, replies, events to store, requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from msgspec import Raw

from accounts.authn import Identity, presented
from agents.core.errors import NoSuchTurn, TooManyFollowUps, Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import FollowUpTaker
from agents.core.post import PostedPrompt
from agents.core.presence import AgentRegistration, Registered, register_connection
from agents.core.trust import is_own_turn, isolates
from agents.links.channel import frames
from agents.links.channel.frames import (
    FROM_AGENT,
    TO_AGENT,
    AgentChannelFrame,
    AgentsRequest,
    BadChannelFrame,
    ChatEvent,
    DispatchRequest,
    Error,
    PeersRequest,
    PermissionRequest,
    ProbeRequest,
    Register,
    Request,
    RouteRequest,
    TailEvent,
)
from agents.links.channel.payloads import (
    Reply,
    ReplyChunk,
    ReplyFrame,
    TaskArtifact,
    TaskStatus,
    kept_of,
    size_of,
)
from agents.links.channel.prompts import LONGEST_TURN_S, Prompts, UnknownChat
from agents.links.channel.requests import ConnectionRequests, SendFrame, find_acting_for
from agents.models import Agent, Event, Session, Turn
from agents.models.choices import AGENTS_OWN_WORDS, Outcome, TurnFailure
from agents.transcript import permissions
from agents.transcript.permissions import NoSuchRequest, TooManyPending
from agents.transcript.pieces import MAX_REPLY_BYTES
from agents.transcript.recording import MAX_TYPE_CHARS, BadPayload, NewEvent, clean, payload_of
from agents.transcript.storage import STORAGE_FULL, StorageMeter
from kit.async_db import db_call
from kit.clock import db_now
from kit.describe import CHANNEL_TOKEN, DescribedSocket

MAX_FRAME_BYTES = 4 * 1_048_576  # kept by the server: a reply of 1 MiB is longer once JSON escapes it
SOCKET = DescribedSocket(
    path="/channel",
    summary="An agent dials out, registers, is asked, and replies.",
    security=[CHANNEL_TOKEN],
    from_client=[*FROM_AGENT.values()],
    to_client=TO_AGENT,
    payloads={ChatEvent: (Reply, ReplyChunk, TaskStatus, TaskArtifact)},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFrameHandler:
    """Handles the frames of one connection. `send`: sends a frame to the agent; raises OSError when it is gone."""

    identity: Identity
    session_id: int
    prompts: Prompts
    requests: ConnectionRequests
    follow_ups: FollowUpTaker
    ledger: Ledger
    meter: StorageMeter
    send: SendFrame

    async def take(self, frame: AgentChannelFrame) -> None:
        """Handle one frame.

        Raises:
            BadChannelFrame: it is not in order; so the agent is told.
        """
        match frame:
            case ChatEvent():
                if (saying := frames.read_reply_frame(frame)) is None:
                    await self._record("chat", frame.event_type, frame.payload)
                else:
                    await self._take_reply(frame.event_type, saying)
            case TailEvent():
                await self._record("tail", frame.event_type, frame.payload)
                if frame.event_type == "Stop":
                    await self.prompts.stopped()
                    await self.ledger.release_session(self.session_id)
                elif frame.event_type == "UserPromptSubmit":
                    self.prompts.hooked(begins=True)
            case PermissionRequest():
                await self._request_permission(frame)
            case AgentsRequest() | PeersRequest() | RouteRequest() | DispatchRequest() | ProbeRequest():
                await self._begin(frame)

    async def _take_reply(self, type_: str, saying: ReplyFrame) -> None:
        try:
            is_taken = await self.prompts.take_reply(saying)
        except UnknownChat:
            if not isinstance(saying, Reply) or not saying.text:
                raise
            await self._follow_up(saying)
            return
        if is_taken and isinstance(saying, TaskStatus | TaskArtifact):
            await self._keep(type_, saying)

    async def _follow_up(self, reply: Reply) -> None:
        """Keep a reply to a turn that has its reply. An isolated agent follows up only for its present caller."""
        if size_of(reply.text) > MAX_REPLY_BYTES:
            raise BadChannelFrame("reply_too_large", f"a reply holds at most {MAX_REPLY_BYTES} bytes")
        text = reply.text.replace("\0", "\ufffd")  # PostgreSQL keeps no NUL
        payload = payload_of(text=text, chatId=reply.chat_id, followUp=True)
        if not await self._has_room(payload.encode()):
            return
        driver = self.prompts.driver()
        only_of = driver.user_id if driver is not None and driver.isolated else None
        try:
            await self.follow_ups.take(self.session_id, reply.chat_id, text, only_of=only_of)
        except NoSuchTurn:
            raise UnknownChat from None
        except TooManyFollowUps as many:
            raise BadChannelFrame("too_many_follow_ups", str(many)) from None
        await self._store(NewEvent(self.session_id, "chat", "reply", payload))

    async def _keep(self, type_: str, said: TaskStatus | TaskArtifact) -> None:
        """Keep a piece of a reply that the reply's own text does not hold."""
        if (kept := kept_of(said)) is not None:
            await self._record("chat", type_, Raw(kept.encode()))

    async def _record(self, kind: str, type_: str, payload: Raw) -> None:
        """Store an event. An event that cannot be stored is lost, but the connection and its prompts continue."""
        if await self._has_room(bytes(payload)):
            await self._store(NewEvent(self.session_id, kind, type_[:MAX_TYPE_CHARS], _cleaned(payload)))

    async def _has_room(self, payload: bytes) -> bool:
        if await self.meter.takes(self.identity.user_id, len(payload)):
            return True
        await self.send(Error(code="quota_exceeded", message=STORAGE_FULL))
        return False

    async def _store(self, event: NewEvent) -> None:
        try:
            await self.ledger.record(event)
        except Unavailable:
            await self.send(Error(code="unavailable", message="the hub cannot keep events now"))

    async def _begin(self, request: Request) -> None:
        """Serve a request of the agent in a task of its own; on whose behalf is decided now."""
        named = request.chat_id if isinstance(request, RouteRequest | DispatchRequest | ProbeRequest) else None
        behalf = find_acting_for(self.prompts.driver(named or ""), self.identity, self.session_id)
        for refusal in self.requests.take(request, behalf):
            await self.send(refusal)

    async def _request_permission(self, frame: PermissionRequest) -> None:
        if not frame.request_id.isprintable():
            raise BadChannelFrame("bad_frame", "requestId: want printable text")
        driver = self.prompts.driver(frame.chat_id or "")
        try:
            row = await db_call(permissions.request)(
                self.session_id,
                frame.request_id,
                tool=frame.tool,
                input_preview=frame.input_preview,
                chat_id=driver.turn if driver and driver.is_certain else "",
            )
        except TooManyPending:
            raise BadChannelFrame("too_many_requests", "too many permission requests wait already") from None
        except NoSuchRequest:  # the session was deleted: the socket is about to hear it
            return
        if asked := permissions.find_requests_for_caller(row):
            await self.prompts.ask_caller(row.chat_id, asked)


def _cleaned(payload: Raw) -> str:
    try:
        return clean(bytes(payload))
    except BadPayload as bad:
        raise BadChannelFrame("bad_frame", str(bad)) from None


MAX_UNFINISHED = 100


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A question from an earlier connection that the agent's program may still be working on."""

    prompt: PostedPrompt
    for_s: float


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """A registered connection."""

    registered: Registered
    unfinished: Sequence[Unfinished]


def register_agent(registration: AgentRegistration, *, process_id: str) -> RegisteredAgent:
    """Register a connection, and read the unfinished prompts of its session."""
    registered = register_connection(registration, process_id=process_id)
    if registered.is_new:
        return RegisteredAgent(registered, ())
    return RegisteredAgent(registered, unfinished_of(registered.session_id))


def unfinished_of(session_id: int) -> list[Unfinished]:
    """The questions of the last 15 minutes that the agent has neither answered nor reported as ended.

    A program that lost its socket continues with a stranger's question: it must not act for its owner then. A
    program that reports the ends of its turns may also continue after its answer to a stranger.
    """
    now = db_now()
    lately = Turn.objects.filter(session_id=session_id, asked_at__gt=now - timedelta(seconds=LONGEST_TURN_S))
    owner = Session.objects.filter(pk=session_id).values("owner_id")
    # Of any agent of the owner: the one that was asked here may have moved to another session since.
    of_agents = lately.filter(agent__in=Agent.objects.filter(owner__in=owner)).values("pk")
    of_session = lately.filter(agent=None).values("pk")
    recent = Turn.objects.filter(
        pk__in=of_agents.union(of_session, all=True), connection_id__isnull=False, caller__isnull=False
    ).exclude(reason=TurnFailure.NOT_DELIVERED)
    # Most sessions come back without a question of late: one query instead of three.
    if not recent.exists():
        return []
    stops = Event.objects.filter(session_id=session_id, kind="tail", type="Stop").order_by("-pk")
    last_stop = stops.values_list("ts", flat=True).first()
    not_over: QuerySet[Any] = recent.annotate(is_own=is_own_turn()).filter(_not_over(last_stop))
    newest = not_over.select_related("agent", "caller").order_by("-asked_at")
    # The newest ones, but the oldest of them first: `Prompts` goes by the order in which prompts went out.
    return [_unfinished(turn, now, is_own=turn.is_own) for turn in reversed(newest[:MAX_UNFINISHED])]


def digest_in(frame: Register) -> str:
    """The digest of the token in a register frame, the header's fallback."""
    token = presented({"authorization": f"Bearer {frame.token or ''}"})
    return token.digest if token else ""


def registration_of(frame: Register, identity: Identity) -> AgentRegistration:
    """The registration of an agent, as a database keeps it."""

    def clean(text: str | None) -> str:
        return (text or "").replace("\0", "")

    return AgentRegistration(
        user_id=identity.user_id,
        credential_id=identity.credential_id,
        session_id=frame.session_id,
        routing_name=frame.routing_name,
        host=clean(frame.host),
        cwd=clean(frame.cwd),
        os_user=clean(frame.os_user),
        pid=frame.pid,
        channel_version=clean(frame.channel_version),
    )


def _not_over(last_stop: datetime | None) -> Q:
    """Turns that the agent did not answer; if its program reports ends, also unreported turns of strangers.

    The agent may still work on a turn that the hub ended without it, as when a process died.
    """
    is_unanswered = Q(settled_at=None) | ~(Q(outcome=Outcome.COMPLETED) | Q(reason__in=AGENTS_OWN_WORDS))
    if last_stop is None:
        return is_unanswered
    not_reported = Q(settled_at=None) | Q(settled_at__gt=last_stop)
    return not_reported & (is_unanswered | Q(is_own=False))


def _unfinished(turn: Turn, now: datetime, *, is_own: bool) -> Unfinished:
    """Only the last session of a chain is stored, so a stranger's onward question may not be passed on."""
    is_isolated_agent = turn.agent is not None and turn.agent.isolated
    prompt = PostedPrompt(
        chat_id=turn.chat_id,
        connection_id=0,
        home="",
        asker=turn.caller.login if turn.caller else "",
        text="",
        wait_s=0.0,
        asker_id=turn.caller_id or 0,
        isolated=isolates(is_own=is_own, is_isolated_agent=is_isolated_agent, is_chain_lost=turn.depth > 0),
        is_own=is_own,
        chain=(turn.session_id,),
        traceparent=turn.traceparent,
    )
    return Unfinished(prompt, LONGEST_TURN_S - (now - turn.asked_at).total_seconds())
