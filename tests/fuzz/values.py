"""Values by a JSON schema, and flaws in them, drawn by Hypothesis."""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lab.frames import Json
from tests.malformed.mutations import (
    BROKEN,
    BYTES,
    EXTRA,
    METHODS,
    NUMBERS,
    TEXTS,
    VALUES,
    Path,
    at,
    paths,
    put,
    snake,
    take,
    written,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]

MAX_LEVELS = 5  # below which optional members and items are left out
MAX_ITEMS = 3
WORDS = st.sampled_from(["hello", "a", "echo: what?", "@demo/echo hello", "12", "x" * 200, *TEXTS])
DIGITS = st.integers(0, 2**16 - 1)
INTEGERS = st.sampled_from([0, 1, 2, 3, 10, 100, 1000, 5000, 2**31, 2**53])
FORMATS = {
    "uuid": st.sampled_from(["00000000-0000-4000-8000-000000000000", "6F9619FF-8B86-D011-B42D-00CF4FC964FF"]),
    "date-time": st.sampled_from(
        ["2026-11-29T10:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z"]
    ),
    "date": st.sampled_from(["2026-11-29", "0001-01-01", "9999-12-31"]),
    "uri": st.sampled_from(["https://x.example/a", "http://127.0.0.1:9/hook", "urn:x"]),
}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ODD = st.one_of(st.sampled_from([*VALUES, *NUMBERS, *TEXTS, *BROKEN]), ANY).map(copy.deepcopy)
CHANGES = st.sampled_from(
    [*["value"] * 3, *["unstorable"] * 2, *["gone"] * 2, *["extra"] * 2, "snake", "moved", "twice", "method"]
)
# What PostgreSQL refuses and SQLite mostly stores: the end of a text, and numbers.
UNSTORABLE_ENDS = st.sampled_from(["\0", "\0", "\ud800", "x" * 3000])
UNSTORABLE_NUMBERS = st.sampled_from([2**15, 2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 10**40, 1e308])
FLAWS = st.sampled_from([0, 0, 1, 1, 1, 1, 2, 3])
IN_BYTES = st.sampled_from([*BYTES, *[""] * (5 * len(BYTES))])  # one document in six is changed as bytes


@dataclass(frozen=True)
class Schemas:
    """JSON schemas that refer to each other. `names`: values that exist, by the names of members."""

    document: Json
    names: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def draw(self, draw: Draw, schema: Json, name: str = "", level: int = 0) -> Any:
        """A value of a schema; `name`: of its member. Half of the members of a known name have a known value."""
        schema = self.found(schema)
        if name in self.names and draw(st.booleans()):
            return copy.deepcopy(draw(st.sampled_from(self.names[name])))
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self.draw(draw, draw(st.sampled_from(schema[choice])), name, level)
        if "allOf" in schema:
            parts = [self.draw(draw, part, name, level) for part in schema["allOf"]]
            return {key: value for part in parts for key, value in part.items()}
        if "const" in schema:
            return copy.deepcopy(schema["const"])
        if "enum" in schema:
            return draw(st.sampled_from(schema["enum"]))
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = draw(st.sampled_from(kind))
        return self._of_kind(draw, kind, schema, level)

    def found(self, schema: Json) -> Json:
        """The schema that a reference leads to."""
        while "$ref" in schema:
            place: Any = self.document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                place = place[part]
            schema = place
        return schema

    def _of_kind(self, draw: Draw, kind: str | None, schema: Json, level: int) -> Any:
        if kind == "object":
            return self._object(draw, schema, level)
        if kind == "array":
            most = min(MAX_ITEMS, schema.get("maxItems", MAX_ITEMS)) if level < MAX_LEVELS else 0
            size = max(draw(st.integers(0, most)), schema.get("minItems", 0))
            return [self.draw(draw, schema.get("items", {}), "", level + 1) for _ in range(size)]
        if kind == "string":
            return self._text(draw, schema)
        if kind in ("integer", "number"):
            least, most = schema.get("minimum", -1), schema.get("maximum", 2**53)
            return min(max(draw(INTEGERS), least), most)
        return {"boolean": draw(st.booleans()), "null": None}[kind] if kind else draw(ODD)

    def _object(self, draw: Draw, schema: Json, level: int) -> Json:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        mask = draw(DIGITS)  # one draw says which members are there
        return {
            name: self.draw(draw, one, name, level + 1)
            for place, (name, one) in enumerate(properties.items())
            if name in required or (level < MAX_LEVELS and mask >> (place % 16) & 1)
        }

    @staticmethod
    def _text(draw: Draw, schema: Json) -> str:
        if "pattern" in schema:
            return str(draw(st.from_regex(schema["pattern"], fullmatch=True)))
        if schema.get("format") in FORMATS:
            return str(draw(FORMATS[schema["format"]]))
        text: str = draw(WORDS)
        return (text[: schema.get("maxLength", len(text))]).ljust(schema.get("minLength", 0), "x")


def draw_flawed(draw: Draw, document: Any) -> Any:
    """The document itself, changed in at most three places."""
    for _ in range(draw(FLAWS) if isinstance(document, dict | list) else 0):
        every = list(paths(document))
        if not every:
            break
        _change(draw, document, every)
    return document


def draw_bytes(draw: Draw, document: Any) -> bytes:
    """The document as JSON; some documents are changed as bytes."""
    body = written(document)
    change = draw(IN_BYTES)
    return BYTES[change](body, min(draw(DIGITS), len(body) - 1) or 1)[0] if change and len(body) > 1 else body


def _change(draw: Draw, document: Any, every: list[Path]) -> None:
    path, change = draw(st.sampled_from(every)), draw(CHANGES)
    if change == "unstorable":
        _make_unstorable(draw, document, every)
    elif change == "gone":
        take(document, path)
    elif change == "extra":
        owners = [document, *(at(document, one) for one in every)]
        objects = [one for one in owners if isinstance(one, dict)]
        if objects:
            name, value = draw(st.sampled_from(EXTRA))
            draw(st.sampled_from(objects)).setdefault(name, copy.deepcopy(value))
    elif change == "snake" and isinstance(path[-1], str):
        put(document, (*path[:-1], snake(path[-1])), take(document, path))
    elif change == "moved":
        put(document, path, json.loads(json.dumps(at(document, draw(st.sampled_from(every))), default=str)))
    elif change == "twice":
        value = at(document, path)
        put(document, path, [value, copy.deepcopy(value)])
    elif change == "method" and isinstance(document, dict) and "method" in document:
        document["method"] = draw(st.sampled_from(METHODS))
    else:
        put(document, path, draw(ODD))


def _make_unstorable(draw: Draw, document: Any, every: list[Path]) -> None:
    """Put what PostgreSQL refuses into a text, or in place of a number."""
    leaves = [one for one in every if isinstance(at(document, one), str | int | float)]
    if leaves:
        path = draw(st.sampled_from(leaves))
        value = at(document, path)
        is_text = isinstance(value, str)
        put(document, path, value + draw(UNSTORABLE_ENDS) if is_text else draw(UNSTORABLE_NUMBERS))
