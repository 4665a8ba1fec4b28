"""Starts turns for all surfaces except the A2A bridge, and for agents that ask other agents.

The starter finds the session that is to be asked, and builds an `Ask` like the bridge does; the same ledger admits
and settles it.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from django.db import DatabaseError

from agents.core.directory import find_askable
from agents.core.dispatch import Dispatcher
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import Notifier
from agents.core.types import Ask, AskSource, AskTarget, SettledTurn
from agents.core.waiting import RunningTurn, text_with_left_out
from agents.models import Session
from agents.models.choices import Outcome, Surface
from agents.models.session import SEEN_AT, online_sessions
from agents.transcript.access import NotAllowed, SessionRole, role_of, sessions_visible_to
from agents.transcript.recording import NewEvent, payload_of
from kit import trace
from kit.durations import seconds
from kit.ids import time_ordered
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

TURN_WAIT_S = seconds(900.0)  # how long a turn stays open when no request waits for it (section 4.4)
PEER_TIMEOUT_S = seconds(120.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingUser:
    """The user on whose behalf an ask is made. `chain`: the sessions that an agent's onward ask came through.

    `traceparent`: the span of the asking request, if any. `parent`: the turn in which an agent asks.
    `passed_by_stranger`: see `Ask`.
    """

    user_id: int
    login: str
    chain: tuple[int, ...] = ()
    traceparent: str = ""
    parent: str = ""
    passed_by_stranger: bool = False


class AskStarter:
    """Starts turns for native surfaces and agents, and mirrors their ends to the session that asked."""

    def __init__(self, *, dispatcher: Dispatcher, ledger: Ledger, notifier: Notifier) -> None:
        self._dispatcher = dispatcher
        self._ledger = ledger
        self._notifier = notifier
        self._mirroring = TaskSet()

    async def ask(
        self,
        asker: AskingUser,
        target: AskTarget,
        text: str,
        *,
        surface: Surface,
        wait_s: float = TURN_WAIT_S,
        tells: bool = False,
        source: AskSource | None = None,
        files: Sequence[int] = (),
    ) -> RunningTurn:
        """Admit an ask and start its turn; the calling function may await `RunningTurn.settled`.

        Raises:
            Denied: nothing was sent; the audit row says why.
            NotPublished, FileGone, Unavailable: nothing was sent, no row was written.
        """
        ask = Ask(
            chat_id=time_ordered(),
            target=target,
            caller_id=asker.user_id,
            caller_login=asker.login,
            surface=surface,
            question=text,
            wait_s=wait_s,
            tells=tells,
            source=source,
            chain=asker.chain,
            files=tuple(files),
            traceparent=trace.follow(asker.traceparent),
            parent=asker.parent,
            passed_by_stranger=asker.passed_by_stranger,
        )
        running = await self._dispatcher.ask(RunningTurn(ask))
        if source is not None and source.mirrors:
            self._mirroring.start(self._mirror_end(running, source), name=f"mirror {ask.chat_id}")
        return running

    async def close(self) -> None:
        """Stop waiting for turns whose ends would be mirrored."""
        await self._mirroring.cancel()

    async def _mirror_end(self, running: RunningTurn, source: AskSource) -> None:
        """Report the end to the session that asked: a reply to its agent, a missing reply in its transcript."""
        in_time = await running.ended(PEER_TIMEOUT_S)
        if not in_time or not _is_answered(running.settled.result()):
            peer = payload_of(peerLogin=source.peer_login, peerSessionId=source.peer_session_id)
            with suppress(Unavailable):  # the session may be gone; the reply is reported all the same
                await self._ledger.record(NewEvent(source.session_id, "chat", "peer-timeout", peer))
        settled = await asyncio.shield(running.settled)  # other tasks wait for this future, too
        answer = text_with_left_out(settled.text, running.pieces)
        text = f"error: {settled.own_words}" if settled.own_words else answer
        if _is_answered(settled) and text:
            ask = running.ask
            await self._notifier.route_reply(
                source.session_id,
                chat_id=ask.chat_id,
                from_name=source.peer_login or "",
                text=text,
                origin="operator",
            )


def _is_answered(settled: SettledTurn) -> bool:
    """True if the agent sent a text: a reply, or its reason for not answering."""
    return settled.outcome is Outcome.COMPLETED or bool(settled.own_words)


MAX_PEERS = 500

_MENTION = re.compile(r"@([A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*)\s+(?=\S)")


class NoSuchTarget(Exception):
    """No target of that name is open to the caller: the target does not exist, or the caller may not see it."""


class AmbiguousPeer(Exception):
    """Several connected sessions have that name; the text lists their full names."""


# Errors that are raised before anything was sent, while a target is found and asked.
NOT_ASKED = (AmbiguousPeer, NoSuchTarget, NotAllowed, NotPublished, FileGone, Denied, Unavailable, DatabaseError)


@dataclass(frozen=True, slots=True)
class Peer:
    """A session that the user may see, with the name by which it is addressed."""

    session: Session
    is_mine: bool
    is_online: bool
    role: SessionRole

    @property
    def target(self) -> AskTarget:
        """The session as the target of an ask."""
        return target_of(self.session)

    @property
    def name(self) -> str:
        """`owner/slug`."""
        return self.target.handle


def target_of(session: Session) -> AskTarget:
    """A session as the target of an ask, by the name `owner/slug`."""
    return AskTarget(None, session.pk, f"{session.owner.login}/{session.routing_name}")


def split_mention(text: str) -> tuple[str, str] | None:
    """The handle and the rest of a text `@owner/slug rest`; None for other texts."""
    found = _MENTION.match(text)
    return (found.group(1), text[found.end() :]) if found else None


def find_agent(handle: str, user_id: int) -> AskTarget | None:
    """The published agent of a handle (without @), if this user may ask the agent."""
    agent = find_askable(handle, user_id)
    return AskTarget(agent.pk, agent.session_id, agent.handle) if agent else None


def load_peers(user_id: int, *, at_least: SessionRole = SessionRole.VIEWER, most: int = MAX_PEERS) -> list[Peer]:
    """The `most` own and shared sessions seen last, without archived ones; own ones first, then by name."""
    found = sessions_visible_to(user_id, at_least=at_least).filter(archived_at=None)
    return _as_peers(list(found.order_by(SEEN_AT.desc())[:most]), user_id)


def get_peer(name: str, user_id: int, *, at_least: SessionRole = SessionRole.PROMPTER) -> Peer:
    """The peer of a name in which the user has at least that role. Names: `slug`, `owner/slug`, with or without @.

    Own sessions come before shared ones, connected before others, then the one seen last.

    Raises:
        NoSuchTarget: no session of that name is visible to the user.
        NotAllowed: the user sees such sessions, but has that role in none of them.
        AmbiguousPeer: several of these sessions are connected.
    """
    owner, _, slug = name.removeprefix("@").rpartition("/")
    if not slug or not name.isprintable():
        raise NoSuchTarget
    found = sessions_visible_to(user_id).filter(archived_at=None, routing_name__iexact=slug)
    if owner:
        found = found.filter(owner__login__iexact=owner)
    seen = list(found)
    peers = _as_peers([one for one in seen if role_of(one) >= at_least], user_id)
    if seen and not peers:
        raise NotAllowed(at_least)
    return _choose(peers)


def _choose(peers: Sequence[Peer]) -> Peer:
    mine = [one for one in peers if one.is_mine] or list(peers)
    live = [one for one in mine if one.is_online]
    if len(live) > 1:
        raise AmbiguousPeer(
            "several connected sessions have that name: " + ", ".join(f"@{one.name}" for one in live)
        )
    if not mine:
        raise NoSuchTarget
    return live[0] if live else max(mine, key=lambda one: one.session.last_seen_at)


def _as_peers(sessions: Sequence[Session], user_id: int) -> list[Peer]:
    online = online_sessions([one.pk for one in sessions])
    peers = [Peer(one, one.owner_id == user_id, one.pk in online, role_of(one)) for one in sessions]
    return sorted(peers, key=lambda one: (not one.is_mine, one.name.lower(), one.session.pk))
