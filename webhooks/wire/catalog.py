"""The events to subscribe to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

ALL_EVENTS = "*"
TEST = "webhook.test"
ALIASES = {"agent.reply": "agent.replied"}  # what existing clients write
OF_SESSION = "sessionId, routingName, ownerLogin"
OF_REQUEST = "sessionId, routingName, requestId, tool, inputPreview"
OF_ASK = "handle, agentId, askerLogin, routeId, question"
OF_ALERT = "handle, agentId, alert, threshold, value, since"
OF_FILE = "sessionId, routingName, fileId, name, bytes, uploaderLogin"
OF_BOOKING = "booking_id, venue_id, status, from, slot_id, slot_time, party_size"


@dataclass(frozen=True, slots=True)
class EventType:
    """One row of the catalog: when it fires, and the fields of its payload."""

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
    EventType("alert.raised", "an alert that you switched on began", OF_ALERT),
    EventType("alert.ended", "the alert ended", f"{OF_ALERT}, endedAt"),
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
)


@dataclass(frozen=True, slots=True)
class EventForm:
    """The parts of some events' deliveries besides those of all; a package above sets it by `set_form`.

    `copies`: further members of the body, each with the name of the one whose value it repeats. `sign`: makes
    further headers of the secrets (as text, newest first), the time in Unix seconds, and the body.
    """

    copies: Mapping[str, str]
    sign: Callable[[Sequence[str], int, bytes], Mapping[str, str]]


FORMS: dict[str, EventForm] = {}  # by type


def set_form(event_types: Iterable[str], form: EventForm) -> None:
    """Have deliveries of these events take this form, in this program."""
    FORMS.update(dict.fromkeys(event_types, form))


def is_wanted(event_type: str, subscribed: list[str]) -> bool:
    """Whether a subscription to these types gets an event of that type."""
    names = {ALIASES.get(name, name) for name in subscribed}
    return event_type in names or ALL_EVENTS in names
