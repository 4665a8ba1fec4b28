"""Shows rows as the shapes of answers declare: each field of a `TypedDict` is an attribute of the row.

The attribute has the name of the field in snake_case, unless `Annotated[..., Source("venue.slug")]` names another.
Times and UUIDs become text. An empty text becomes null where the field may be null, and leaves out a field that is
`NotRequired`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any, NamedTuple, NotRequired, TypeVar, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from kit.clock import iso

Shape = TypeVar("Shape")
_CAPITAL = re.compile(r"(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class RowSource:
    """The attribute that a field shows. Dots lead to other rows; a field of an absent row is null."""

    path: str


class ShapeField(NamedTuple):
    """The way in which a field of a shape is read from a row."""

    path: tuple[str, ...]
    is_nullable: bool
    may_be_absent: bool


def show(shape: type[Shape], row: object, **given: Any) -> Shape:
    """A row as a shape. `given`: the fields that are no attributes of the row."""
    declared: Any = shape
    shown = {}
    for name, field in fields_of(declared).items():
        value = given[name] if name in given else _read(row, field)
        if value != "" or not field.may_be_absent:
            shown[name] = value
    return cast(Shape, shown)


def show_each(shape: type[Shape]) -> Callable[[Iterable[object]], list[Shape]]:
    """Shows several rows as a shape that declares all of its fields."""
    return lambda rows: [show(shape, row) for row in rows]


@cache
def fields_of(shape: Any) -> Mapping[str, ShapeField]:
    """The fields of a shape by name, in its order."""
    fields = {}
    for name, declared in get_type_hints(shape, include_extras=True).items():
        may_be_absent = get_origin(declared) is NotRequired
        hint = get_args(declared)[0] if may_be_absent else declared
        sources = [one.path for one in getattr(hint, "__metadata__", ()) if isinstance(one, RowSource)]
        [path] = sources or [_CAPITAL.sub("_", name).lower()]
        is_nullable = type(None) in get_args(hint.__origin__ if sources else hint)
        fields[name] = ShapeField(tuple(path.split(".")), is_nullable, may_be_absent)
    return fields


def _read(row: Any, field: ShapeField) -> Any:
    for name in field.path:
        row = getattr(row, name) if row is not None else None
    if isinstance(row, datetime):
        return iso(row)
    if isinstance(row, date):
        return row.isoformat()
    if isinstance(row, UUID):
        return str(row)
    return None if field.is_nullable and row == "" else row
