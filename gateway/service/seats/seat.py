"""The seat of an agent: the one connection that has its name, and what it was asked and has not answered.

A seat is a session of its owner over the link `gateway`; its routing name is the agent's name. So it is published,
shared, halted, counted and audited like any other, and its owner's other agents find it by that name.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Q
from msgspec import Struct

from accounts import quotas
from accounts.authn import Identity
from agents import limits
from agents.core.ports import Clock
from agents.core.post import Prompt
from agents.core.presence import Registration, make_slug
from agents.links.channel.agent_frames import RegisteredAgent, register_agent
from agents.links.channel.payloads import MAX_TEXT_BYTES, Reply, TaskArtifact, TaskStatus
from agents.links.channel.prompts import LATE_REPLY_S, Driver, Prompts
from agents.links.channel.protocol import TooLarge
from agents.models import Connection, Session
from agents.transcript.pieces import Part
from gateway.service.seats.enrolment import ONLINE, enroll
from gateway.wire.frame_types import is_agent_name
from gateway.wire.frames import Envelope, Json, new_id, now_ms
from kit.newest import NewestEntries

GATEWAY_LINK = "gateway"  # `Session.link` of agents that connect to the gateway
ENVELOPE_TYPE = "application/vnd.a2a-v1+json"
RESULT_ARTIFACT = "result"
ANSWERED_KEPT = 256


class NameTaken(Exception):
    """Another program of the owner is connected under that name, over another link."""


@transaction.atomic
def take_seat(identity: Identity, name: str, process_id: str) -> RegisteredAgent:
    """Register a connection for the agent of that name; a connection that had the seat is evicted.

    Raises:
        NameTaken, MayNotConnect, QuotaExceeded: nothing was written.
    """
    quotas.lock_owner(identity.user_id)  # names are unique per owner
    named = Session.objects.filter(owner_id=identity.user_id, routing_name=name)
    seat = named.filter(link=GATEWAY_LINK).order_by("-last_seen_at").first()
    others = named.exclude(link=GATEWAY_LINK).filter(Q(connection__isnull=False) | Q(reachable_from__isnull=False))
    if others.exists():
        raise NameTaken
    registration = Registration(
        user_id=identity.user_id,
        credential_id=identity.credential_id,
        session_id=str(seat.public_id) if seat else None,
        routing_name=name,
        host="",
        cwd="",
        os_user="",
        pid=None,
        channel_version="",
        link=GATEWAY_LINK,
    )
    arrival = register_agent(registration, process_id=process_id)
    enroll(identity.user_id, name)
    return arrival


@transaction.atomic
def make_seat(owner_id: int, name: str) -> bool:
    """Make the session of an agent that has not connected yet, so that it is found and offline; whether it is new.

    Raises:
        QuotaExceeded: the owner has as many sessions as one may have.
    """
    quotas.lock_owner(owner_id)
    named = Session.objects.filter(owner_id=owner_id, routing_name=name)
    if named.filter(archived_at=None).exists():
        return False
    if named.filter(link=GATEWAY_LINK).update(archived_at=None):
        return False
    limits.SESSIONS.check(owner_id)
    Session.objects.create(owner_id=owner_id, routing_name=name, link=GATEWAY_LINK)
    return True


class OpenMessage(Struct, frozen=True):
    """A message that the agent was sent and has to answer. `until`: when its sender stops waiting."""

    chat_id: str
    sender: str
    correlation_id: str
    until: float


class Seat:
    """The seat that a connection has taken. `prompts`: checks its replies, and says for which caller it works."""

    def __init__(self, arrival: RegisteredAgent, prompts: Prompts, clock: Clock) -> None:
        registered = arrival.registered
        self.name = registered.routing_name
        self.session_id = registered.session_id
        self.connection_id = registered.connection_id
        self.prompts = prompts
        self.status = ONLINE  # what the agent says of itself; a row has it, too
        self._clock = clock
        self._open: dict[str, OpenMessage] = {}  # by the id of the frame
        self._by_correlation: dict[str, str] = {}
        self._answered = NewestEntries[str, OpenMessage](ANSWERED_KEPT)  # by correlation id
        for one in arrival.unfinished:
            prompts.resume(one.prompt, one.for_s)

    def begin(self, prompt: Prompt) -> Json:
        """Note a prompt that is about to be sent; its frame."""
        frame = make_message(prompt, self.name)
        self.prompts.begin(prompt)
        if not prompt.tells:
            metadata = frame["metadata"]
            # Two senders may have chosen the same id: a reply could not say which of them it is for.
            if metadata["correlationId"] in self._by_correlation:
                metadata["correlationId"] = prompt.chat_id
            if frame["id"] in self._open:
                frame["id"] = new_id()
            opened = OpenMessage(
                prompt.chat_id, frame["from"], metadata["correlationId"], self._clock() + prompt.wait_s
            )
            self._open[frame["id"]] = opened
            self._by_correlation[opened.correlation_id] = frame["id"]
        return frame

    def withdraw(self, frame_id: str, chat_id: str) -> None:
        """Forget a prompt that was not sent."""
        self._close(frame_id)
        self.prompts.withdraw(chat_id)

    def find_open(self, envelope: Envelope) -> str | None:
        """The id of the open message that a frame answers, by its correlation id; None when it answers none."""
        return self._by_correlation.get(envelope.correlation_id) if self._by_correlation else None

    def drop_late(self, envelope: Envelope) -> bool:
        """Drop an answer to a message that was answered before, or whose sender has long stopped waiting.

        Returns False for any other frame. The agent works on that message no more.
        """
        answered = self._answered.get(envelope.correlation_id) if self._answered else None
        if answered is None or envelope.agent not in ("", answered.sender):
            return False
        self.prompts.end_drive(answered.chat_id)
        return True

    def driver_of(self, envelope: Envelope) -> Driver | None:
        """The caller on whose behalf the agent sends a frame; None: its owner. `parentId`: its message.

        If only the owner asked, the caller is None once no asker waits for the agent's answer.
        """
        opened = self._open.get(str(envelope.metadata.get("parentId", "")))
        driver = self.prompts.driver(opened.chat_id if opened else "")
        if driver is not None and driver.is_own and not self._is_waited_for:
            return None
        return driver

    async def take_reply(self, frame_id: str, envelope: Envelope) -> None:
        """Settle the turn of an open message by the frame that answers it; the agent works on it no more.

        Raises:
            TooLarge: the reply passes a cap; its turn has failed.
        """
        chat_id = self._open[frame_id].chat_id
        self._close(frame_id)
        try:
            for piece in read_reply(chat_id, envelope):
                await self.prompts.take_reply(piece)
        except TooLarge as large:
            # The frame is the whole reply, whichever part of it is too large.
            await self.prompts.too_large(TooLarge(chat_id, str(large), is_finished=True))
            raise
        finally:
            self.prompts.end_drive(chat_id)

    async def end_told(self, prompt: Prompt) -> None:
        """End the turn of a message that wants no response: it was delivered."""
        await self.prompts.end_told(prompt.chat_id)

    def forget_old(self, now: float) -> None:
        """Stop expecting replies for which no caller has waited for a minute."""
        self.prompts.forget_old(now)
        for frame_id in [one for one, opened in self._open.items() if opened.until < now - LATE_REPLY_S]:
            self._close(frame_id)

    @property
    def _is_waited_for(self) -> bool:
        now = self._clock()
        return any(opened.until > now for opened in self._open.values())

    def _close(self, frame_id: str) -> None:
        opened = self._open.pop(frame_id, None)
        if opened is None:
            return
        del self._by_correlation[opened.correlation_id]
        self._answered[opened.correlation_id] = opened


@transaction.atomic
def renew_seat(seat: Seat, credential_id: int) -> None:
    """Tie a seat to a newer token of its agent: from now on it ends when that one is revoked."""
    Session.objects.filter(pk=seat.session_id).update(credential_id=credential_id)
    Connection.objects.filter(pk=seat.connection_id).update(credential_id=credential_id)


def carry_envelope(envelope: Envelope, sender: str, caller: str) -> tuple[Part, ...]:
    """An envelope as parts of an ask to a seat, so that nothing of it is lost.

    `sender`: its name, checked, as the seat sees it; `caller`: the login of a sender of another owner, else empty.
    """
    carried = {
        "type": envelope.type,
        "id": envelope.id or new_id(),
        "from": sender,
        "sessionId": envelope.session_id,
        "timestamp": envelope.timestamp_ms or now_ms(),
        "content": envelope.content,
        "metadata": _metadata_of(envelope, caller),
        "extra": envelope.extra,
    }
    return (Part(data=carried, media_type=ENVELOPE_TYPE),)


def make_message(prompt: Prompt, name: str) -> Json:
    """The frame by which a seat is asked."""
    carried = _find_envelope(prompt)
    metadata = {**carried.get("metadata", {}), "requiresResponse": not prompt.tells}
    if not prompt.tells:
        metadata.setdefault("correlationId", prompt.chat_id)
    elif carried.get("metadata", {}).get("requiresResponse") is None:
        del metadata["requiresResponse"]
    if not carried:
        metadata["caller"] = prompt.asker
    if prompt.traceparent:
        metadata.setdefault("traceparent", prompt.traceparent)
    session_id = carried.get("sessionId") or prompt.context_id
    return {
        **carried.get("extra", {}),
        "type": carried.get("type", "message"),
        "id": carried.get("id") or f"msg-{prompt.chat_id}",
        "from": carried.get("from") or name_of_asker(prompt.asker),
        "agent": name,
        **({"sessionId": session_id} if session_id else {}),
        "timestamp": carried.get("timestamp") or now_ms(),
        "content": carried.get("content") or {"role": "user", "content": _content_of(prompt)},
        "metadata": metadata,
    }


def make_told(envelope: Envelope, sender: str, caller: str, name: str) -> Json:
    """The frame by which a seat is told what an envelope says, without a turn. `sender`, `caller`: as carried."""
    frame: Json = {
        **envelope.extra,
        "type": envelope.type,
        "id": envelope.id or new_id(),
        "from": sender,
        "timestamp": envelope.timestamp_ms or now_ms(),
        "content": envelope.content,
        "metadata": _metadata_of(envelope, caller),
        "agent": name,
    }
    if envelope.session_id:
        frame["sessionId"] = envelope.session_id
    return frame


def read_reply(chat_id: str, envelope: Envelope) -> Sequence[Reply | TaskArtifact | TaskStatus]:
    """The frame of a seat that answers, as a link reports it: text as text, an object as data."""
    content = envelope.content
    if envelope.type == "error" or content.get("error") is not None:
        error = content.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        text = _text_of(said or content.get("message") or error or "")
        return [TaskStatus(chat_id, "failed", text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore"))]
    value = content.get("result") if envelope.type == "response" else content.get("content")
    if isinstance(value, str):
        return [Reply(chat_id, value)]
    return [
        TaskArtifact(chat_id, RESULT_ARTIFACT, (Part(data=value),), last_chunk=True),
        TaskStatus(chat_id, "completed"),
    ]


def _metadata_of(envelope: Envelope, caller: str) -> Json:
    """Its metadata with the login of a sender of another owner, which no sender can set."""
    metadata = envelope.metadata
    if "caller" in metadata:
        metadata = {key: value for key, value in metadata.items() if key != "caller"}
    return {**metadata, "caller": caller} if caller else metadata


def _find_envelope(prompt: Prompt) -> Json:
    """The envelope that a prompt carries. One of a caller over A2A is a part like any other: it has a task."""
    if prompt.task_id or len(prompt.parts) != 1 or prompt.parts[0].media_type != ENVELOPE_TYPE:
        return {}
    carried: Json = prompt.parts[0].data
    return carried


def name_of_asker(login: str) -> str:
    """A caller without a seat as a name that the reply may have as its `agent`."""
    name = make_slug(login)
    return name if is_agent_name(name) else f"caller-{name}"[:64]


def _content_of(prompt: Prompt) -> str | Json:
    if not prompt.parts:
        return prompt.text
    return {"text": prompt.text, "parts": [msgspec.to_builtins(part) for part in prompt.parts]}


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
