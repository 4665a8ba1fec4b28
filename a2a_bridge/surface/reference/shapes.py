"""A struct's fields in a few words each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Struct, UnsetType, inspect

DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Field:
    """One field as it is on the wire. `name`: a path for what lies inside others, `message.parts[].text`."""

    name: str
    type: str
    required: bool


def summary(shape: Any) -> str:
    """The docstring's first paragraph as one line, without its marks of code."""
    first = (shape.__doc__ or "").split("\n\n")[0]
    return " ".join(first.split()).replace("`", "")


def fields_of(shape: type[Struct], before: str = "") -> Iterator[Field]:
    """The fields of a struct, those of structs inside it after each."""
    info = inspect.type_info(shape)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{shape!r} is no struct")
    yield from _fields(info, before)


def _fields(info: inspect.StructType, before: str) -> Iterator[Field]:
    for field in info.fields:
        name = f"{before}{field.encode_name}"
        yield Field(name, _named(field.type), field.required)
        inner, path = _inside(field.type, name)
        if isinstance(inner, inspect.StructType) and name.count(".") < DEEPEST:
            yield from _fields(inner, path)


def _inside(kind: inspect.Type, name: str) -> tuple[inspect.Type, str]:
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return kind.item_type, f"{name}[]."
    if isinstance(kind, inspect.UnionType):
        structs = (one for one in kind.types if isinstance(one, inspect.StructType))
        return next(structs, kind), f"{name}."
    return kind, f"{name}."


def _named(kind: inspect.Type) -> str:
    match kind:
        case inspect.StrType():
            return "text" + _bounds(kind.min_length, kind.max_length, " characters")
        case inspect.IntType():
            return "whole number" + _bounds(kind.ge, kind.le)
        case inspect.BoolType():
            return "true or false"
        case inspect.NoneType():
            return "null"
        case inspect.LiteralType():
            return " or ".join(f'"{value}"' for value in kind.values)
        case inspect.FloatType():
            return "number"
        case inspect.ListType() | inspect.VarTupleType():
            return f"list of {_named(kind.item_type)}" + _bounds(kind.min_length, kind.max_length)
        case inspect.UnionType():
            return _either(kind)
        case inspect.StructType() | inspect.DictType() | inspect.TypedDictType():
            return "object"
    return "any JSON"


def _either(kind: inspect.UnionType) -> str:
    """The types that a field may have. That it may be left out or null is shown by its not being required."""
    left_out = (inspect.type_info(UnsetType), inspect.NoneType())
    names = [_named(one) for one in kind.types if one not in left_out]
    return " or ".join(names) or "null"


def _bounds(least: int | None, most: int | None, unit: str = "") -> str:
    if most is None:
        return "" if least is None else f", at least {least}{unit}"
    return f", at most {most}{unit}" if least is None else f", {least} to {most}{unit}"
