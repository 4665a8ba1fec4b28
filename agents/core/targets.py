"""Resolves names to targets: published agents by handle, sessions as peers by routing name (section 3.6)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agents.core.directory import find_askable
from agents.core.types import Target
from agents.models import Session
from agents.models.presence import online_sessions
from agents.models.session import SEEN_AT
from agents.transcript.access import NotAllowed, Role, role_of, sessions_visible_to

MOST_PEERS = 500

_MENTION = re.compile(r"@([A-Za-z0-9][A-Za-z0-9_.-]*/[A-Za-z0-9][A-Za-z0-9_.-]*)\s+(?=\S)")


class NoSuchTarget(Exception):
    """No target of that name for this caller: absent, or not allowed."""


class AmbiguousPeer(Exception):
    """Several sessions answer to that name; the text says how to tell them apart."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A session that the user may see, with the name by which it is addressed."""

    session: Session
    is_mine: bool
    is_online: bool
    role: Role

    @property
    def target(self) -> Target:
        """As an ask names it."""
        return Target(None, self.session.pk, self.name)

    @property
    def name(self) -> str:
        """`owner/slug`."""
        return f"{self.session.owner.login}/{self.session.routing_name}"


def split_mention(text: str) -> tuple[str, str] | None:
    """The handle and the rest of a text that begins with `@owner/slug` and continues after it."""
    found = _MENTION.match(text)
    return (found.group(1), text[found.end() :]) if found else None


def find_agent(handle: str, user_id: int) -> Target | None:
    """The published agent of a handle (without @), when this user may ask it."""
    agent = find_askable(handle, user_id)
    return Target(agent.pk, agent.session_id, agent.handle) if agent else None


def load_peers(user_id: int, *, at_least: Role = Role.VIEWER, most: int = MOST_PEERS) -> list[Peer]:
    """The `most` own and shared sessions seen last, without archived ones; own ones first, then by name."""
    found = sessions_visible_to(user_id, at_least=at_least).filter(archived_at=None)
    return _as_peers(list(found.order_by(SEEN_AT.desc())[:most]), user_id)


def get_peer(name: str, user_id: int, *, at_least: Role = Role.PROMPTER) -> Peer:
    """The one peer of a name in which a user has that role: `slug`, `@slug`, `owner/slug` or `@owner/slug`.

    Own sessions come before shared ones, connected before others, then the one seen last.

    Raises:
        NoSuchTarget: no session of that name is visible to the user.
        NotAllowed: the user sees such sessions, but has that role in none of them.
        AmbiguousPeer: several of them are connected.
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
