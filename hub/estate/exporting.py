"""Everything of one user as lines of JSON, read a few rows at a time."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db.models import ForeignKey, Model

from accounts.models import User
from agents.models import File
from agents.transcript.files import open_file
from hub.estate.parts import PARTS, SECRET, Part
from kit.async_db import db_call
from kit.clock import db_now
from kit.iso import iso

FORMAT = "clawbridge-export"
VERSION = 1
MEDIA_TYPE = "application/x-ndjson"


def lines(user: User) -> Iterator[str]:
    """A head, a line for each row (`{"table", "row"}`), and an end that says how many there were."""
    yield _head(user)
    count = 0
    for part in PARTS:
        last: Any = None
        while batch := _next(part, user, last):
            last = batch[-1].pk
            count += len(batch)
            yield from (_line(part, row) for row in batch)
    yield _end(count)


async def stream(user: User) -> AsyncIterator[str]:
    """The same without holding up the loop."""
    yield await db_call(_head)(user)
    count = 0
    for part in PARTS:
        last: Any = None
        while batch := await db_call(_next)(part, user, last):
            last = batch[-1].pk
            count += len(batch)
            yield "".join([await db_call(_line)(part, row) for row in batch])
    yield _end(count)


def _next(part: Part, user: User, after: Any) -> list[Any]:
    people = [field.name for field in _shown(part.model) if _is_person(field)]
    rows = part.rows(user).select_related(*people)
    return list((rows if after is None else rows.filter(pk__gt=after))[: part.at_once])


def _shown(model: type[Model]) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.name not in SECRET]


def _is_person(field: Any) -> bool:
    return isinstance(field, ForeignKey) and field.related_model is User


def _line(part: Part, row: Any) -> str:
    shown = {field.name: _value(row, field) for field in _shown(part.model)}
    if isinstance(row, File) and (data := open_file(row)) is not None:
        shown["data"] = base64.b64encode(data).decode()
    return json.dumps({"table": part.name, "row": shown}, ensure_ascii=False) + "\n"


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
        case UUID():
            return str(value)
    return value


def _head(user: User) -> str:
    head = {"format": FORMAT, "version": VERSION, "login": user.login, "exportedAt": iso(db_now())}
    return json.dumps(head, ensure_ascii=False) + "\n"


def _end(count: int) -> str:
    return json.dumps({"end": True, "rows": count}) + "\n"
