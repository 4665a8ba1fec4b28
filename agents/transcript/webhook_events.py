"""The webhook events of sessions and agents (section 7 of the wire): their audience and payloads."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Raw

from agents.models import Session
from kit.clock import iso
from kit.sql import KeyedQuery
from webhooks import outbox
from webhooks.outbox import OutboxEvent

_SESSIONS = KeyedQuery(
    lambda ids: Session.objects.filter(pk__in=ids).values_list(
        "pk", "public_id", "routing_name", "owner_id", "owner__login", "shares__user_id"
    )
)


@dataclass(frozen=True, slots=True)
class SessionAudience:
    """A session as webhooks name it. `audience`: its owner and those it is shared with."""

    public_id: str
    routing_name: str
    owner_id: int
    owner_login: str
    audience: frozenset[int]

    def make_event(self, type_: str, traceparent: str = "", /, **members: Any) -> OutboxEvent:
        """An event for every user who sees the session."""
        payload = {"sessionId": self.public_id, "routingName": self.routing_name, **members}
        return OutboxEvent(
            type=type_,
            audience=self.audience,
            payload=payload,
            session_id=self.public_id,
            routing_name=self.routing_name,
            traceparent=traceparent,
        )

    def event(
        self, event_id: int, kind: str, type_: str, payload: str, ts: datetime, traceparent: str = ""
    ) -> OutboxEvent:
        """An event was stored; `payload` is JSON text."""
        shown = {"id": event_id, "kind": kind, "type": type_, "payload": Raw(payload.encode()), "ts": iso(ts)}
        return self.make_event(f"{kind}.event", traceparent, ownerLogin=self.owner_login, event=shown)

    def agent(self, type_: str, traceparent: str = "", /, **members: Any) -> OutboxEvent:
        """Something about an ask to the agent on this session: for its owner alone."""
        return OutboxEvent(
            type=type_,
            audience={self.owner_id},
            payload={name: value for name, value in members.items() if value is not None},
            session_id=self.public_id,
            routing_name=self.routing_name,
            traceparent=traceparent,
        )


def load_session_audiences(session_ids: Collection[int]) -> dict[int, SessionAudience]:
    """Load the audiences of these sessions in one round trip."""
    found: dict[tuple[Any, ...], set[int | None]] = {}
    for *session, sharee_id in _SESSIONS.rows(session_ids):  # a session that is not shared has one row
        found.setdefault(tuple(session), set()).add(sharee_id)
    return {
        pk: SessionAudience(str(public_id), f"@{name}", owner_id, login, frozenset({owner_id, *sharees} - {None}))
        for (pk, public_id, name, owner_id, login), sharees in found.items()
    }


def queue_session_event(session: Session, type_: str, members: Mapping[str, Any]) -> None:
    """Queue the webhook deliveries of a session's event, inside the transaction that caused it."""
    if outbox.has_subscriptions():
        outbox.record([load_session_audiences([session.pk])[session.pk].make_event(type_, **members)])
