"""Makes JSON objects of rows, as the shapes of answers declare: each field of a `TypedDict` is an attribute of the
row.

The attribute has the name of the field in snake_case, unless `Annotated[..., RowSource("venue.slug")]` names
another. Times and UUIDs become text, and rows the shape that the type names. An empty text becomes null where the
field may be null, and leaves out a field that is `NotRequired`. A field whose type has one value (`None`,
`Literal[True]`), or that is `Always` the same, needs no attribute.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import (
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from kit.clock import iso

Shape = TypeVar("Shape")
_CAPITAL = re.compile(r"(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class RowSource:
    """The attribute that a field shows. Dots lead to other rows; a field of an absent row is null. Empty: the row.

    `unit`: how many of the attribute's units are one of the field's, such as a million micro-dollars for a dollar.
    """

    path: str
    unit: int = 1


@dataclass(frozen=True, slots=True)
class Always:
    """The value of a field that is the same for every row."""

    value: Any


class ShapeField(NamedTuple):
    """The way in which a field of a shape is read from a row: `path` in its `unit`, or `constant`.

    `shape`: the shape of the related row, or rows, if the attribute refers to rows.
    """

    path: tuple[str, ...]
    unit: int
    constant: Always | None
    shape: Any
    is_nullable: bool
    may_be_absent: bool


def show(shape: type[Shape], row: object, **given: Any) -> Shape:
    """A row as a shape. `given`: the values of fields that are not attributes of the row."""
    declared: Any = shape
    shown = {}
    for name, field in fields_of(declared).items():
        value = given[name] if name in given else _read(row, field)
        if value != "" or not field.may_be_absent:
            shown[name] = value
    return cast(Shape, shown)


def show_each(shape: type[Shape]) -> Callable[[Iterable[object]], list[Shape]]:
    """Make a function that shows several rows as a shape; the shape declares the sources of all its fields."""
    return lambda rows: [show(shape, row) for row in rows]


@cache
def fields_of(shape: Any) -> Mapping[str, ShapeField]:
    """The fields of a shape by name, in its order."""
    fields = {}
    for name, declared in get_type_hints(shape, include_extras=True).items():
        may_be_absent = get_origin(declared) is NotRequired
        hint = get_args(declared)[0] if may_be_absent else declared
        metadata = getattr(hint, "__metadata__", ())
        source = next((one for one in metadata if isinstance(one, RowSource)), None)
        source = source or RowSource(_CAPITAL.sub("_", name).lower())
        constant = next((one for one in metadata if isinstance(one, Always)), _find_only_value(hint))
        plain = hint.__origin__ if metadata else hint
        shapes = [one for one in (plain, *get_args(plain)) if is_typeddict(one)]
        is_nullable = type(None) in get_args(plain)
        path = tuple(filter(None, source.path.split(".")))
        shape_of_row = shapes[0] if shapes else None
        fields[name] = ShapeField(path, source.unit, constant, shape_of_row, is_nullable, may_be_absent)
    return fields


def _find_only_value(hint: Any) -> Always | None:
    if hint is type(None):
        return Always(None)
    values = get_args(hint) if get_origin(hint) is Literal else ()
    return Always(values[0]) if len(values) == 1 else None


def _read(row: Any, field: ShapeField) -> Any:
    if field.constant is not None:
        return field.constant.value
    for name in field.path:
        row = getattr(row, name) if row is not None else None
    if field.unit != 1:
        return row if row is None else row / field.unit
    if field.shape is not None:
        return _show_rows(field.shape, row)
    if isinstance(row, datetime):
        return iso(row)
    if isinstance(row, date):
        return row.isoformat()
    if isinstance(row, UUID):
        return str(row)
    return None if field.is_nullable and row == "" else row


def _show_rows(shape: Any, rows: Any) -> Any:
    """One row or several as a shape; the value of a JSON column has the shape already."""
    if rows is None or isinstance(rows, Mapping):
        return rows
    return [_show_rows(shape, one) for one in rows] if isinstance(rows, Iterable) else show(shape, rows)
