"""Rows of the intake, by plain SQL, as its statements run with every envelope (docs/adr/0005); transactions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Model

from agnt.models import Interaction, KeyUsage, SeenEnvelope
from agnt.service.keys import FoundKey, find_keys
from kit import sql

SOURCE = "external_agent"
MAX_INTENT_CHARS = 32
TRIES = 5
LOCK_FAILURES = frozenset({"40P01", "40001", "55P03"})
Result = TypeVar("Result")

_encode = msgspec.json.Encoder().encode


class Name(NamedTuple):
    """A name of an event: sender and timestamp; or no sender, and the signature of a payload in place of both."""

    sender: str
    timestamp: str


class Event(NamedTuple):
    """An event of a customer. Each of `names` names it; none: it is not known again."""

    network_id: int
    customer: str
    intent: str
    names: Sequence[Name]


class Seen(NamedTuple):
    """A row of an event. `answer`: the text of the response, empty while it runs."""

    row_id: int
    name: Name
    digest: str
    state: str
    answer: str
    expires_at: datetime

    @property
    def is_done(self) -> bool:
        """Whether the answer is known."""
        return self.state == SeenEnvelope.State.DONE


def find_live_key(digest: str) -> FoundKey | None:
    """The live key; by a new connection where this thread's has died, as in a restart of PostgreSQL."""
    try:
        return find_keys([digest]).get(digest)
    except sql.DATABASE_AWAY:
        connection.close()
        return find_keys([digest]).get(digest)


def commit(work: Callable[[], Result], *, is_flushed: bool = True) -> Result:
    """Run work in a transaction; again when it lost a lock, its connection or its event, and so wrote nothing."""
    atomic = transaction.atomic if is_flushed else sql.atomic_unflushed
    for tries_left in reversed(range(TRIES)):
        connection.ensure_connection()
        used, is_run = connection.connection, False
        try:
            with atomic():
                result = work()
                is_run = True
            break
        except IntegrityError:  # another request has added the event: now it is known
            if not tries_left:
                raise
        except OperationalError as failure:
            is_lost = not is_run and connection.connection is not used  # Django replaces one that has died
            if not tries_left or not (is_lost or sql.state_of(failure) in LOCK_FAILURES):
                raise
    return result


def count_call(key_id: int, day: date) -> int:
    """Count a call of a key; the new total of that day. The row is locked until the transaction ends."""
    on = day.isoformat()
    return int(sql.rows(_COUNT.format(table=KeyUsage._meta.db_table), [key_id, on])[0][0])


def find_seen(event: Event) -> list[Seen]:
    """The rows of an event, in the order of its names; expired ones too."""
    if not event.names:
        return []
    marks = ", ".join(["%s"] * len(event.names))
    statement = _FIND.format(table=SeenEnvelope._meta.db_table, marks=marks)
    senders, timestamps = zip(*event.names, strict=True)
    found = sql.rows(statement, [event.network_id, event.customer, *senders, event.intent, *timestamps])
    rows = [
        Seen(row_id, Name(sender, timestamp), digest, state, answer, _read_time(expires_at))
        for row_id, sender, timestamp, digest, state, answer, expires_at in found
    ]
    return sorted((row for row in rows if row.name in event.names), key=lambda row: event.names.index(row.name))


def add_seen(event: Event, names: Iterable[Name], **columns: object) -> list[int]:
    """Add a row for each of these names of an event; their ids.

    Raises:
        IntegrityError: another transaction has added the event.
    """
    of_event = {"network_id": event.network_id, "customer": event.customer, "intent": event.intent}
    return [_insert(SeenEnvelope, of_event | name._asdict() | columns) for name in names]


def add_interaction(intent: str, metadata: Mapping[str, Any], **columns: object) -> None:
    """Add a row to the log. `metadata` holds neither a key nor a signature."""
    text = _encode(metadata).decode()
    _insert(Interaction, columns | {"source": SOURCE, "intent": intent[:MAX_INTENT_CHARS], "metadata": text})


def _insert(model: type[Model], columns: Mapping[str, object]) -> int:
    """Insert a row; its id."""
    values = [sql.moment(value) if isinstance(value, datetime) else value for value in columns.values()]
    marks = ", ".join(["%s"] * len(values))
    statement = _INSERT.format(table=model._meta.db_table, columns=", ".join(columns), marks=marks)
    return int(sql.rows(statement, values)[0][0])


def _read_time(value: datetime) -> datetime:
    """A time as the driver gives it: SQLite's is in UTC, and does not say so."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


_INSERT = "INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING id"
_FIND = (
    "SELECT id, sender, timestamp, payload_digest, state, answer, expires_at FROM {table} WHERE network_id = %s"
    " AND customer = %s AND sender IN ({marks}) AND intent = %s AND timestamp IN ({marks})"
)
_COUNT = (
    "INSERT INTO {table} (key_id, day, calls) VALUES (%s, %s, 1) ON CONFLICT (key_id, day)"
    " DO UPDATE SET calls = {table}.calls + 1 RETURNING calls"
)
