"""Where the rest of the hub says what happened: a row for everybody who wants to hear, in the same transaction."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import connection, transaction

from kit import sql
from kit.ids import time_ordered
from webhooks.catalog import is_wanted

Waker = Callable[[], None]

_wakers: list[Waker] = []

_LISTENING = """
SELECT s.id, s.owner_id, s.events, s.session_id, s.routing_name
FROM webhooks_subscription s JOIN accounts_user u ON u.id = s.owner_id
WHERE u.is_active AND s.owner_id IN ({marks}) {lock}
"""
# A delete waits, else our caller's commit would fail; one under way may take long, and is not waited for.
_LOCK = {"sqlite": "", "postgresql": "FOR KEY SHARE OF s SKIP LOCKED"}
_QUEUE = """
INSERT INTO webhooks_delivery
    (subscription_id, event_id, type, payload, traceparent, status, attempts, queued_at, next_attempt_at,
     last_error)
VALUES {rows}
"""
_ROW = "(%s, %s, %s, %s, %s, 'pending', 0, {now}, {now}, '')"
NOW = {"sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')", "postgresql": "clock_timestamp()"}
ROWS_AT_ONCE = 190  # five values each: SQLite took at most 999 in one statement for long


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something others may want to hear of.

    `audience` are the ids of users who may; `payload` is JSON with the wire's own names. `session_id` (a UUID) and
    `routing_name` (with its @) are what filters look at; None when it belongs to no session. `traceparent`: of the
    turn it is about, if any.
    """

    type: str
    audience: Collection[int]
    payload: Mapping[str, Any]
    session_id: str | None = None
    routing_name: str | None = None
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class _Listener:
    """A subscription, as far as matching goes."""

    subscription_id: int
    owner_id: int
    events: str
    session_id: str
    routing_name: str

    def wants(self, happening: Happening) -> bool:
        return (
            self.owner_id in happening.audience
            and is_wanted(happening.type, self.events.split())
            and self.session_id in ("", happening.session_id)
            and self.routing_name in ("", happening.routing_name)
        )


LISTENING = "SELECT EXISTS (SELECT 1 FROM webhooks_subscription)"  # for who asks it together with others


def anybody_listens() -> bool:
    """Whether there is any subscription at all: most hubs have none, and need not say what happened."""
    return bool(sql.rows(LISTENING)[0][0])


def record(happenings: Sequence[Happening]) -> int:
    """Queue a delivery for each subscription that wants each of these; how many. Call it in their transaction.

    One query when nobody listens, one more for each 190 deliveries.
    """
    audience = {user_id for happening in happenings for user_id in happening.audience}
    if not audience:
        return 0
    found = sql.rows(_LISTENING.format(marks=sql.marks(audience), lock=_LOCK[connection.vendor]), list(audience))
    listeners = [_Listener(*row) for row in found]
    pairs = [(one, happening) for happening in happenings for one in listeners if one.wants(happening)]
    return len(queue([(one.subscription_id, happening) for one, happening in pairs]))


def queue(deliveries: Sequence[tuple[int, Happening]]) -> list[str]:
    """A row for each of these subscriptions, and the senders woken once it is committed; the event ids."""
    rows = [
        (one, new_event_id(), happening.type, as_json(happening.payload), happening.traceparent)
        for one, happening in deliveries
    ]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        _insert(rows[start : start + ROWS_AT_ONCE])
    if rows:
        # Not earlier: a sender that looks before the commit finds nothing, and waits for its schedule.
        transaction.on_commit(wake)
    return [row[1] for row in rows]


def on_queued(waker: Waker) -> None:
    """Call it after each commit that queued something: it must return at once. `hub` hands it down."""
    if waker not in _wakers:
        _wakers.append(waker)


def wake() -> None:
    """There is something to send. Without a waker the schedule finds it within seconds."""
    for waker in _wakers:
        waker()


def new_event_id() -> str:
    """What a receiver knows repetitions by."""
    return f"evt_{time_ordered()}"


def as_json(payload: Mapping[str, Any]) -> str:
    """A payload as text every database and receiver takes: no NaN, no half of a surrogate pair.

    A part that is JSON text already may stand in it as `msgspec.Raw`.
    """
    try:
        return msgspec.json.encode(payload).decode("utf-8")
    except UnicodeEncodeError:  # half a pair
        text = json.dumps(payload, ensure_ascii=False, default=_parsed).encode("utf-8", "replace")
        return msgspec.json.encode(json.loads(text, parse_constant=lambda _: None)).decode("utf-8")


def _parsed(part: msgspec.Raw) -> Any:
    return json.loads(bytes(part))


def _insert(rows: Sequence[tuple[int, str, str, str, str]]) -> None:
    row = _ROW.format(now=NOW[connection.vendor])
    sql.run(_QUEUE.format(rows=",".join([row] * len(rows))), [value for values in rows for value in values])
