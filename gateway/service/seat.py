"""The seat of an agent: the one connection that has the agent's name, and the messages that it has to answer.

A seat is a session of its owner over the link `gateway`; its routing name is the agent's name. A seat is therefore
published, shared, halted, counted and audited like any other session, and its owner's other agents find it by that
name.
"""

import re
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import Q
from msgspec import Struct

from accounts import quotas
from accounts.authn import Identity
from accounts.quotas import QuotaExceeded
from agents.core.ask_starter import AskingUser
from agents.core.ports import Clock
from agents.core.post import PostedPrompt
from agents.core.registration import AgentRegistration, MayNotConnect, Refusal
from agents.limits import SESSIONS
from agents.links.channel.driving import ActingFor, RegisteredAgent, register_agents
from agents.links.channel.prompts import LATE_REPLY_S, Prompts, TooLarge
from agents.models import Connection, Session
from gateway import limits
from gateway.models import TeamAgent
from gateway.service.seat_frames import make_message, read_reply
from gateway.wire.frames import Envelope, Json, new_id
from kit.clock import db_now
from kit.newest import NewestEntries

GATEWAY_LINK = "gateway"  # `Session.link` of agents that connect to the gateway
NO_SESSION = 0  # the status of a client without a seat
ANSWERED_KEPT = 256
MAX_CONFIG_BYTES = 16_384
ROLE = re.compile(r"[a-z][a-z0-9-]{0,31}")
DEFAULT_ROLE = "agent"
ONLINE = TeamAgent.Status.ONLINE.value
OWN_STATUSES = frozenset(TeamAgent.Status.values)


def act_without_seat(user_id: int, login: str, traceparent: str = "") -> ActingFor:
    """The party on whose behalf a client without a seat acts: its user."""
    return ActingFor(AskingUser(user_id=user_id, login=login, traceparent=traceparent), NO_SESSION)


class SeatNameTaken(Exception):
    """Another program of the owner is connected under that name, over another link."""


def seat_registration(identity: Identity, name: str) -> AgentRegistration:
    """The registration of the agent of that name; the connection that has the seat is evicted."""
    return AgentRegistration(
        user_id=identity.user_id,
        credential_id=identity.credential_id,
        session_id=None,
        routing_name=name,
        host="",
        cwd="",
        os_user="",
        pid=None,
        channel_version="",
        link=GATEWAY_LINK,
        keeps_name=True,
    )


@transaction.atomic
def take_seats(
    registrations: Sequence[AgentRegistration], *, process_id: str
) -> list[RegisteredAgent | Refusal | SeatNameTaken]:
    """Register agents of one owner, each of another name. See `agents.links.channel.arrivals.Arrivals`."""
    owner_id = registrations[0].user_id
    quotas.lock_owner(owner_id)  # names are unique per owner
    names = [str(one.routing_name) for one in registrations]
    named = Session.objects.filter(owner_id=owner_id, routing_name__in=names).exclude(link=GATEWAY_LINK)
    others = named.filter(Q(connection__isnull=False) | Q(reachable_from__isnull=False))
    taken = set(others.values_list("routing_name", flat=True))
    refused: dict[str, Refusal | SeatNameTaken] = {name: SeatNameTaken() for name in taken}
    refused |= _find_refused(owner_id, [name for name in names if name not in taken])
    wanted = [one for one in registrations if one.routing_name not in refused]
    arrived = register_agents(wanted, process_id=process_id) if wanted else []
    outcomes = dict(zip((one.routing_name for one in wanted), arrived, strict=True))
    _enroll(owner_id, [str(name) for name, one in outcomes.items() if isinstance(one, RegisteredAgent)])
    return [outcomes.get(one.routing_name) or refused[str(one.routing_name)] for one in registrations]


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
    SESSIONS.check(owner_id)
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
        self.status = ONLINE  # the status that the agent reported; a row has it, too
        self._clock = clock
        self._open: dict[str, OpenMessage] = {}  # by the id of the frame
        self._by_correlation: dict[str, str] = {}
        self._answered = NewestEntries[str, OpenMessage](ANSWERED_KEPT)  # by correlation id
        for prompt in arrival.unfinished:
            prompts.resume(prompt)

    def begin(self, prompt: PostedPrompt) -> Json:
        """Note a prompt that is about to be sent; returns the frame."""
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

    def acting_for(self, owner: ActingFor, envelope: Envelope) -> ActingFor:
        """The user on whose behalf the agent sends a frame: a caller, else its owner. `parentId`: its message.

        If only the owner asked, it acts for the owner alone once no asker waits for its answer.
        """
        opened = self._open.get(str(envelope.metadata.get("parentId", "")))
        behalf = self.prompts.acting_for(owner, opened.chat_id if opened else "")
        return behalf if behalf.asker.passed_by_stranger or self._is_waited_for else owner

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


def read_role(text: str) -> str | None:
    """A role as the wire writes it; `triad_member` is `triad-member`. None: the text is no role."""
    role = text.replace("_", "-")
    return role if ROLE.fullmatch(role) else None


def _find_refused(owner_id: int, names: Sequence[str]) -> dict[str, Refusal]:
    """Of agents that want their seats: those that the owner has made inactive, and the last ones, for which the
    team has no room. The rows are locked: an owner who makes an agent inactive after that finds its connection.
    """
    rows = TeamAgent.objects.select_for_update(no_key=True).order_by("pk").filter(owner_id=owner_id)
    is_active = dict(rows.filter(name__in=names).values_list("name", "is_active"))
    why = "the owner of this agent has made it inactive"
    refused: dict[str, Refusal] = {
        name: MayNotConnect("not_active", why) for name, active in is_active.items() if not active
    }
    new = [name for name in names if name not in is_active]
    held = limits.TEAM_AGENTS.count_used(owner_id) if new else 0
    for more, name in enumerate(new, 1):
        try:
            limits.TEAM_AGENTS.check_number(held, more)
        except QuotaExceeded as full:
            refused[name] = full
    return refused


def _enroll(owner_id: int, names: Sequence[str]) -> None:
    """Note that agents took their seats: each has a row, and is `online` until it says otherwise."""
    now = db_now()
    TeamAgent.objects.bulk_create(
        [TeamAgent(owner_id=owner_id, name=name, status=ONLINE, status_at=now) for name in names],
        update_conflicts=True,
        unique_fields=["owner", "name"],
        update_fields=["status", "status_at"],
    )


def set_status(owner_id: int, name: str, status: str) -> str:
    """Store the status that an agent reports; returns its earlier status."""
    agent: dict[str, Any] = {"owner_id": owner_id, "name": name}
    previous = TeamAgent.objects.filter(**agent).values_list("status", flat=True).first()
    # The owner may have deleted the row while the agent is connected.
    TeamAgent.objects.update_or_create(**agent, defaults={"status": status, "status_at": db_now()})
    return previous or ONLINE
