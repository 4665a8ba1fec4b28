"""What webhooks hear of sessions and agents (section 7 of the wire): who may, and in which words."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Raw

from agents.models import Session
from kit.iso import iso
from kit.sql import KeyedQuery
from webhooks import outbox
from webhooks.outbox import Happening

_SESSIONS = KeyedQuery(
    lambda ids: Session.objects.filter(pk__in=ids).values_list(
        "pk", "public_id", "routing_name", "owner_id", "owner__login", "shares__user_id"
    )
)


@dataclass(frozen=True, slots=True)
class Scene:
    """A session as webhooks name it. `audience`: its owner and those it is shared with."""

    public_id: str
    routing_name: str
    owner_id: int
    owner_login: str
    audience: frozenset[int]

    def say(self, type_: str, traceparent: str = "", /, **members: Any) -> Happening:
        """Something that everybody who sees the session may hear of."""
        payload = {"sessionId": self.public_id, "routingName": self.routing_name, **members}
        return Happening(
            type=type_,
            audience=self.audience,
            payload=payload,
            session_id=self.public_id,
            routing_name=self.routing_name,
            traceparent=traceparent,
        )

    def event(
        self, event_id: int, kind: str, type_: str, payload: str, ts: datetime, traceparent: str = ""
    ) -> Happening:
        """An event was stored; `payload` is JSON text."""
        shown = {"id": event_id, "kind": kind, "type": type_, "payload": Raw(payload.encode()), "ts": iso(ts)}
        return self.say(f"{kind}.event", traceparent, ownerLogin=self.owner_login, event=shown)

    def agent(self, type_: str, traceparent: str = "", /, **members: Any) -> Happening:
        """Something about an ask to the agent on this session: for its owner alone."""
        return Happening(
            type=type_,
            audience={self.owner_id},
            payload={name: value for name, value in members.items() if value is not None},
            session_id=self.public_id,
            routing_name=self.routing_name,
            traceparent=traceparent,
        )


def scenes(session_ids: Collection[int]) -> dict[int, Scene]:
    """The scenes of these sessions, one round trip."""
    found: dict[tuple[Any, ...], set[int | None]] = {}
    for *session, sharee_id in _SESSIONS.rows(session_ids):  # a session that is not shared has one row
        found.setdefault(tuple(session), set()).add(sharee_id)
    return {
        pk: Scene(str(public_id), f"@{name}", owner_id, login, frozenset({owner_id, *sharees} - {None}))
        for (pk, public_id, name, owner_id, login), sharees in found.items()
    }


def tell(session: Session, type_: str, members: Mapping[str, Any]) -> None:
    """From synchronous code, inside the transaction that caused it: let webhooks hear of a session."""
    if outbox.anybody_listens():
        outbox.record([scenes([session.pk])[session.pk].say(type_, **members)])
