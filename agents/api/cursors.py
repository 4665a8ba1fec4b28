"""Lists read by cursor: `?after=` or `?before=` an id, else the newest; always ascending."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from rest_framework import serializers

from agents.transcript.reading import Window, read

Row = TypeVar("Row", bound=Model)
Shown = TypeVar("Shown")
MAX_ID = 2**63 - 1


class CursorPage(msgspec.Struct, Generic[Shown], frozen=True, rename="camel"):
    """A window of a list, ascending by id. `firstId` is the next `before`, `lastId` the next `after`."""

    items: list[Shown]
    first_id: int | None
    last_id: int | None
    has_more: bool


class CursorQuery(serializers.Serializer[Any]):
    """Which part of the list."""

    highest_limit: ClassVar[int]

    after = serializers.IntegerField(required=False, min_value=0, max_value=MAX_ID)
    before = serializers.IntegerField(required=False, min_value=0, max_value=MAX_ID)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse two directions at once."""
        if "after" in attrs and "before" in attrs:
            raise serializers.ValidationError("give after or before, not both")
        return attrs

    @property
    def window(self) -> Window:
        """What it asks for; a limit above the highest gets the highest."""
        asked = self.validated_data
        limit = min(asked["limit"], self.highest_limit)
        return Window(limit=limit, after=asked.get("after"), before=asked.get("before"))


def cursor_page(rows: QuerySet[Row, Any], window: Window, show: Callable[[Row], Shown]) -> HttpResponse:
    """The answer with one window of rows."""
    found, has_more = read(rows, window)
    first, last = (found[0].pk, found[-1].pk) if found else (None, None)
    return json_answer(CursorPage([show(row) for row in found], first, last, has_more))


def json_answer(body: msgspec.Struct) -> HttpResponse:
    """JSON written by msgspec: a payload goes out as the text it is stored as, whatever it holds."""
    return HttpResponse(msgspec.json.encode(body), content_type="application/json")
