"""Which sessions a user of a team may read and change, which take new entries, and how many there may be."""

from datetime import datetime, timedelta

from msgspec import Struct

from agents.models import Session
from gateway.models import SessionLog, TeamAgent, TeamPolicy
from gateway.service.seats.seat import GATEWAY_LINK
from gateway.service.sessions.entries import Place
from gateway.wire.errors import NOT_FOUND, ErrorCode, FrameRefused
from kit.clock import db_now


class SessionUser(Struct, frozen=True):
    """A reader and writer of a team's sessions. `agent`: the agent with these sessions; empty: all."""

    owner_id: int
    login: str
    agent: str = ""

    @property
    def writer(self) -> str:
        """Its name as a writer of a session: only that one may change a session that it locked."""
        return self.agent or f"@{self.login}"


def check_agent(user: SessionUser, agent: str) -> None:
    """Refuse an agent that the team does not have, or whose sessions are not the user's.

    Raises:
        FrameRefused: 3001, 5004.
    """
    if user.agent:
        if agent == user.agent:
            return
        if _is_known(user.owner_id, agent):
            text = "an agent reads and changes its own sessions alone"
            raise FrameRefused(ErrorCode.PERMISSION_DENIED, text)
    elif _is_known(user.owner_id, agent):
        return
    raise FrameRefused(ErrorCode.AGENT_NOT_FOUND, NOT_FOUND)


def get_session(user: SessionUser, agent: str, session_id: str, *, writes: bool = False) -> SessionLog:
    """A session; `writes`: locked until the transaction ends.

    Raises:
        FrameRefused: 3001, 5004, 4001; 4003 when another writer locked a session that the user wants to change.
    """
    check_agent(user, agent)
    found = SessionLog.objects.filter(owner_id=user.owner_id, agent=agent, session_id=session_id)
    log = (found.select_for_update() if writes else found).first()
    if log is None:
        raise FrameRefused(ErrorCode.SESSION_NOT_FOUND, "the agent has no session of that id", field="sessionId")
    if writes and is_locked(log, user.writer, db_now()):
        raise refuse_locked()
    return log


def find_ttl_s(owner_id: int) -> int | None:
    """How long after its last entry a session of the team takes new ones; None: for ever."""
    policies = TeamPolicy.objects.filter(owner_id=owner_id)
    return policies.values_list("session_ttl_s", flat=True).first()


def check_sessions(place: Place) -> None:
    """Refuse a message for a session that takes no further entries.

    Raises:
        FrameRefused: 4002, 4003.
    """
    logs = list(
        SessionLog.objects.filter(owner_id=place.owner_id, agent__in=place.agents, session_id=place.session_id)
    )
    ttl_s = find_ttl_s(place.owner_id) if logs else None
    for log in logs:
        check_writable(log, ttl_s, place.writer, db_now())


def check_writable(log: SessionLog, ttl_s: int | None, writer: str, now: datetime) -> None:
    """Refuse a new entry in a session that takes none.

    Raises:
        FrameRefused: 4002, 4003.
    """
    if log.state == SessionLog.State.ARCHIVED:
        text = "this session is archived: it takes no further messages"
        raise FrameRefused(ErrorCode.SESSION_EXPIRED, text, field="sessionId", reason="archived")
    if ttl_s is not None and log.last_entry_at + timedelta(seconds=ttl_s) <= now:
        text = "this session has expired: it takes no further messages"
        raise FrameRefused(ErrorCode.SESSION_EXPIRED, text, field="sessionId")
    if is_locked(log, writer, now):
        raise refuse_locked()


def is_locked(log: SessionLog, writer: str, now: datetime) -> bool:
    """Whether another writer locked it."""
    return log.locked_until is not None and log.locked_until > now and log.locked_by != writer


def refuse_locked() -> FrameRefused:
    """The error for a session that another writer locked."""
    return FrameRefused(ErrorCode.SESSION_LOCKED, "another writer has locked this session", field="sessionId")


def _is_known(owner_id: int, agent: str) -> bool:
    seats = Session.objects.filter(owner_id=owner_id, routing_name=agent, link=GATEWAY_LINK)
    enrolled = TeamAgent.objects.filter(owner_id=owner_id, name=agent)
    logs = SessionLog.objects.filter(owner_id=owner_id, agent=agent)
    return seats.exists() or enrolled.exists() or logs.exists()
