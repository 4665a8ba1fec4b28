"""The events to subscribe to, and the body of a delivery with its signature. The module does no I/O.

Receivers verify signatures as docs/howto/receive-webhooks.md says.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from standardwebhooks import Webhook

from kit.clock import iso

ALL_EVENTS = "*"
TEST = "webhook.test"
RATED = "answer.rated"
STAFF_ACTED = "staff.acted"
ALIASES = {"agent.reply": "agent.replied"}  # the spelling of existing clients
OF_SESSION = "sessionId, routingName, ownerLogin"
OF_REQUEST = "sessionId, routingName, requestId, tool, inputPreview"
OF_ASK = "handle, agentId, askerLogin, routeId, question"
OF_PROBLEM = "handle, agentId, askerLogin, routeId, note"
OF_ALERT = "handle, agentId, alert, threshold, value, since"
OF_FAILURE = "handle, agentId, failureId, reason, text, count, firstAt, lastAt"
OF_FILE = "sessionId, routingName, fileId, name, bytes, uploaderLogin"
OF_ACT = "id, at, actor, actorIsStaff, act, kind, objectId, objectName, what"
OF_BOOKING = "booking_id, venue_id, status, from, slot_id, slot_time, party_size"
SIGNATURE = "X-Clawborrator-Signature"
SECRET_PREFIX = "whsec_"  # noqa: S105  no secret
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class EventType:
    """One row of the catalog: the cause of the event, and the fields of its payload."""

    type: str
    fires: str
    payload: str


CATALOG = (
    EventType("chat.event", "a chat event was stored in a session you see", f"{OF_SESSION}, event"),
    EventType("tail.event", "a tail event was stored in a session you see", f"{OF_SESSION}, event"),
    EventType("permission.requested", "an agent asks whether it may use a tool", OF_REQUEST),
    EventType("permission.resolved", "a user decided, or time ran out", f"{OF_REQUEST}, decision, resolverLogin"),
    EventType("agent.dispatched", "a question was handed to your agent", OF_ASK),
    EventType("agent.replied", "your agent answered, or failed to", f"{OF_ASK}, reply, ok, latencyMs"),
    EventType("agent.denied", "a question to your agent was refused", f"{OF_ASK}, ok, deniedReason"),
    EventType("problem.reported", "a caller reported a problem with an ask of your agent", OF_PROBLEM),
    EventType(RATED, "a caller rated an answer of your agent", f"{OF_ASK}, rating, note, ratedAt"),
    EventType("alert.raised", "an alert that you switched on began", OF_ALERT),
    EventType("alert.ended", "the alert ended", f"{OF_ALERT}, endedAt"),
    EventType("failure.opened", "your agent failed in a way that it had not failed before", OF_FAILURE),
    EventType("failure.reopened", "a failure that you had resolved occurred again", OF_FAILURE),
    EventType("session.connected", "a session you see came online", OF_SESSION),
    EventType("session.disconnected", "a session you see went offline", OF_SESSION),
    EventType("file.uploaded", "a file was put into a session you see", OF_FILE),
    EventType("file.deleted", "a file of a session you see was deleted", OF_FILE),
    EventType("file.referenced", "a prompt named a file of a session you see", OF_FILE),
    EventType("booking.confirmed", "a booking was asked for, or you confirmed it: see status", OF_BOOKING),
    EventType("booking.cancelled", "a booking was cancelled", OF_BOOKING),
    EventType("booking.completed", "a booking took place", OF_BOOKING),
    EventType("booking.no_show", "the guest of a booking did not come", OF_BOOKING),
    EventType(TEST, "you asked for it", "webhookId, message"),
    EventType(ALL_EVENTS, "all of the above", "that of the event"),
    EventType(STAFF_ACTED, "an entry of the staff was added to the log; for administrators, not in *", OF_ACT),
)


# Receivers of AGNT read `id` and `data`, where those of other events read `eventId` and `payload`.
BOOKING_EVENTS = tuple(row.type for row in CATALOG if row.payload == OF_BOOKING)


def is_wanted(event_type: str, subscribed: list[str]) -> bool:
    """True if a subscription to these types gets an event of that type. `*` does not include `staff.acted`."""
    names = {ALIASES.get(name, name) for name in subscribed}
    return event_type in names or (ALL_EVENTS in names and event_type != STAFF_ACTED)


def write_body(event_id: str, event_type: str, queued_at: datetime, payload: str) -> bytes:
    """The bytes that are sent, the same in each attempt. `payload` is JSON already."""
    members = {
        "eventId": f'"{event_id}"',
        "type": json.dumps(event_type),
        "ts": f'"{iso(queued_at)}"',
        "payload": payload,
    }
    if event_type in BOOKING_EVENTS:
        members |= {"id": members["eventId"], "data": members["payload"]}
    joined = ",".join(f'"{name}":{value}' for name, value in members.items())
    return f"{{{joined}}}".encode()


def sign(event_id: str, event_type: str, body: bytes, secrets: Sequence[str], now: datetime) -> dict[str, str]:
    """The headers of one attempt, signed now by each secret, newest first.

    `X-Clawborrator-Signature` takes the secret's text as its key, all of it; Standard Webhooks take the bytes that
    the part behind `whsec_` is the base64 of. Receivers of AGNT verify by the newest secret alone.
    """
    moment = int(now.timestamp())
    text = body.decode("utf-8")
    headers = {
        SIGNATURE: ",".join([f"t={moment}", *(f"v1={sign_with_time(one, moment, body)}" for one in secrets)]),
        "webhook-id": event_id,
        "webhook-timestamp": str(moment),
        "webhook-signature": " ".join(Webhook(secret).sign(event_id, now, text) for secret in secrets),
    }
    if event_type in BOOKING_EVENTS:
        headers |= {"X-Agnt-Timestamp": str(moment), "X-Agnt-Signature": sign_with_time(secrets[0], moment, body)}
    return headers


def new_signing_secret() -> str:
    """A signing secret: `whsec_` and 32 random bytes in base64."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")


def sign_with_time(secret: str, moment: int, body: bytes) -> str:
    """The HMAC-SHA256 of the time in Unix seconds, a dot and the body, in hex."""
    return hmac.new(secret.encode("ascii"), f"{moment}.".encode("ascii") + body, hashlib.sha256).hexdigest()
