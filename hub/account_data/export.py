"""The data of one user as lines of JSON, read a few rows or a slice of a file at a time; and as a download."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import ForeignKey, Model
from django.http import StreamingHttpResponse

from accounts.models import User
from agents.models import File
from agents.transcript.files import BlobGone, open_file
from hub.account_data.tables import EXPORTED, AccountTable
from kit.async_db import stream_slices
from kit.clock import db_now, iso
from kit.concurrency import DOWNLOADS, take_slot

FORMAT = "clawbridge-export"
VERSION = 1
MEDIA_TYPE = "application/x-ndjson"
SLICE_CHARS = 256 * 1024
KEYS_AT_ONCE = 1_000

SECRET = frozenset(
    {
        *("password", "digest", "sealed", "secret", "previous_secret", "credentials"),
        *("family_digest", "previous_digest", "successor_secret"),
    }
)


def pieces(user: User) -> Iterator[str]:
    """The text: a head, a line for each row (`{"table", "row"}`), and an end with the number of rows.

    A piece is a line, or a part of a line that holds a file. A file that is deleted while it is read is cut short:
    its `data` does not have its `size`.
    """
    yield _head(user)
    count = 0
    for part in EXPORTED:
        for row in _rows(part, user):
            yield from _line(part, row)
            count += 1
    yield _end(count)


async def stream(user: User) -> AsyncIterator[str]:
    """The text of `pieces` in slices of about the same size."""
    async for piece in stream_slices(_slices(user)):
        yield piece


def _slices(user: User) -> Iterator[str]:
    """Join pieces to slices."""
    held: list[str] = []
    size = 0
    for piece in pieces(user):
        held.append(piece)
        size += len(piece)
        if size >= SLICE_CHARS:
            yield "".join(held)
            held, size = [], 0
    yield "".join(held)


def _rows(part: AccountTable, user: User) -> Iterator[Any]:
    """Read many keys at a time, and as many rows as fit into memory. No cursor stays open between the queries."""
    people = [field.name for field in _shown(part.model) if _is_person(field)]
    whole = part.model._default_manager.select_related(*people).order_by("pk")
    for keys in _keys(part, user):
        for start in range(0, len(keys), part.at_once):
            yield from list(whole.filter(pk__in=keys[start : start + part.at_once]))


def _keys(part: AccountTable, user: User) -> Iterator[list[Any]]:
    rows = part.rows(user).values_list("pk", flat=True)
    keys = list(rows[:KEYS_AT_ONCE])
    while keys:
        yield keys
        keys = list(rows.filter(pk__gt=keys[-1])[:KEYS_AT_ONCE])


def _shown(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.name not in SECRET]


def _is_person(field: Any) -> bool:
    return isinstance(field, ForeignKey) and field.related_model is User


def _line(part: AccountTable, row: Any) -> Iterator[str]:
    shown = {field.name: _value(row, field) for field in _shown(part.model)}
    shown |= {name: unseal(shown[name]) for name, unseal in part.unseal.items()}
    line = json.dumps({"table": part.name, "row": shown}, ensure_ascii=False)
    slices = open_file(row) if isinstance(row, File) else None
    if slices is None:
        yield f"{line}\n"
        return
    yield f'{line.removesuffix("}}")}, "data": "'
    with suppress(BlobGone):
        for data in slices:
            yield base64.b64encode(data).decode()
    yield '"}}\n'


def _value(row: Any, field: Any) -> Any:
    if _is_person(field):
        person = getattr(row, field.name)
        return person.login if person else None
    value = field.value_from_object(row)
    match value:
        case datetime():
            return iso(value)
        case date():
            return value.isoformat()
        case UUID() | Decimal():
            return str(value)
        case bytes() | memoryview():
            return base64.b64encode(value).decode()
    return value


def _head(user: User) -> str:
    head = {"format": FORMAT, "version": VERSION, "login": user.login, "exportedAt": iso(db_now())}
    return json.dumps(head, ensure_ascii=False) + "\n"


def _end(count: int) -> str:
    return json.dumps({"end": True, "rows": count}) + "\n"


def export_of(request: Any, user: User, caller_id: int) -> StreamingHttpResponse:
    """A response that is sent while the rows are read, and that no cache may store.

    Raises:
        TooManyAtOnce: the caller or the process has too many downloads under way.
    """
    take_slot(request, DOWNLOADS, caller_id)
    name = f"{user.login}-{db_now():%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"}
    return StreamingHttpResponse(stream(user), content_type=MEDIA_TYPE, headers=headers)
