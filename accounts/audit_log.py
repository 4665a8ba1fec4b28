"""The audit log: what users changed in the admin and what staff changed and read, with user and time; its JSON.

Rows are only added, and deleted by age if the hub's operator chose one (`ACTS_KEPT_DAYS`).
"""

from collections.abc import Callable, Sequence
from typing import Annotated, TypedDict

from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Model

from accounts.models import User
from kit.describe import Time
from kit.rows import RowSource, show

READ = 4  # a flag besides Django's ADDITION, CHANGE and DELETION
ACT_NAMES = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted", READ: "read"}
OTHER_ACT = "did"
ROWS_NAMED = 100
REPR_CHARS = 200

Row = tuple[str, str]  # key and name of a row
Listener = Callable[[Sequence[LogEntry]], None]

_listeners: list[Listener] = []


def on_recorded(listener: Listener) -> None:
    """Register a function that is called with new entries in the transaction that adds them."""
    if listener not in _listeners:
        _listeners.append(listener)


def announce(entries: Sequence[LogEntry]) -> None:
    """Call the listeners with entries that were just added, also those that Django added."""
    for listener in _listeners:
        listener(entries)


def name_rows(rows: Sequence[Model]) -> list[Row]:
    """The keys and names of rows, read before an action changes them."""
    return [(str(row.pk), str(row)[:REPR_CHARS]) for row in rows]


@transaction.atomic
def record_act(user: User, model: type[Model], rows: Sequence[Row], what: str, *, flag: int = CHANGE) -> None:
    """Record an action of a user on these rows; beyond 100 rows the last entry says that there were more.

    For a group the entry names the maintainer who acts for it.
    """
    kind = ContentType.objects.get_for_model(model)
    named = list(rows[:ROWS_NAMED]) or [("", "")]
    added = LogEntry.objects.bulk_create(
        LogEntry(
            user_id=(user.acted_by or user).pk,
            content_type=kind,
            object_id=key,
            object_repr=name,
            action_flag=flag,
            change_message=f"{what} (and more rows)" if number == ROWS_NAMED < len(rows) else what,
        )
        for number, (key, name) in enumerate(named, start=1)
    )
    announce(added)


def record_reading(user: User, model: type[Model], what: str, row: Model | None = None) -> None:
    """Record that a member of staff read rows of other users."""
    record_act(user, model, name_rows([row]) if row is not None else [], what, flag=READ)


class ListedAct(TypedDict):
    """One act of a user. `kind`: the table of the object, such as `accounts.user`; null for a table that is gone.

    `actorIsStaff`: as it is now. `objectId` and `objectName` are empty where the act is about no single row.
    """

    id: int
    at: Annotated[Time, RowSource("action_time")]
    actor: Annotated[str, RowSource("user.login")]
    actorIsStaff: Annotated[bool, RowSource("user.is_staff")]
    act: str
    kind: str | None
    objectId: str
    objectName: Annotated[str, RowSource("object_repr")]
    what: str


def show_act(entry: LogEntry) -> ListedAct:
    """The JSON of an act whose user and content type are loaded."""
    kind = entry.content_type
    return show(
        ListedAct,
        entry,
        act=ACT_NAMES.get(entry.action_flag, OTHER_ACT),
        kind=f"{kind.app_label}.{kind.model}" if kind else None,
        objectId=entry.object_id or "",
        what=entry.get_change_message(),
    )
