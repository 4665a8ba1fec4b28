"""JSON Schemas of users, checked with a bound on the work.

This module imports `jsonschema`, which is large: other modules import this one when they use it first.

The keywords in `UNCHECKED` have no bound: a regular expression may take hours. Agents read them, and the hub does
not check them.
"""

import json
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from jsonschema import validators
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry
from referencing.jsonschema import DRAFT202012

UNCHECKED = ("pattern", "patternProperties", "uniqueItems", "unevaluatedProperties", "unevaluatedItems")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
MAX_SCHEMA_CHARS = 20_000
MAX_FLAW_CHARS = 500
MAX_OBJECTS = 2_000
MAX_CPU_S = 0.5
MAX_ERRORS = 2_000  # the library's errors refer to each other, and to free very many takes long


class _Bound:
    """The end of a check in processor seconds of its thread, and the errors that may still be found."""

    def __init__(self) -> None:
        self.ends_at = time.thread_time() + MAX_CPU_S
        self.errors_left = MAX_ERRORS

    def check(self) -> None:
        """Raise `Uncheckable` beyond the bounds."""
        if time.thread_time() > self.ends_at or self.errors_left < 0:
            raise Uncheckable("checking a reply by it takes too long")


_bound: ContextVar[_Bound] = ContextVar("bound")


class Uncheckable(Exception):
    """A schema cannot be applied; the text says why."""


def find_schema_flaw(schema: dict[str, Any]) -> str:
    """The reason why a schema is refused; empty for a sound schema."""
    if len(json.dumps(schema, ensure_ascii=False, separators=(",", ":"))) > MAX_SCHEMA_CHARS:
        return f"want at most {MAX_SCHEMA_CHARS} characters"
    inner = [*_objects_in(schema)]
    if len(inner) > MAX_OBJECTS:
        return f"want at most {MAX_OBJECTS} objects"
    if any(isinstance(one.get("$schema"), str) for one in inner[1:]):
        return "want $schema at the top alone"
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    for ref in [one[name] for one in inner for name in REFERENCES if isinstance(one.get(name), str)]:
        if ref != "#" and not ref.startswith("#/"):
            return f"{ref[:100]}: want references inside the schema, such as #/$defs/name"
        try:
            resolver.lookup(ref)
        except Exception:  # noqa: BLE001  the library raises errors of many kinds for what cannot be a reference
            return f"{ref[:100]}: there is no such place in the schema"
    try:
        plain = _class_of(schema)
        error = next(plain(plain.META_SCHEMA).iter_errors(schema), None)
        if error is not None:
            return _describe_error(error)
        find_flaw({}, schema)  # a schema that refers to itself without end shows it here
    except Uncheckable as wrong:
        return str(wrong)
    except Exception:  # noqa: BLE001  as above
        return "it is no JSON Schema"
    return ""


def find_flaw(value: Any, schema: dict[str, Any]) -> str:
    """The reason why a value is not valid; empty for a valid value.

    Raises:
        Uncheckable: the schema is not sound, or takes too long.
    """
    begun = _bound.set(_Bound())
    try:
        bounded = _bounded(_class_of(schema))
        # A subschema that names its dialect would be applied by the library's own class, without a bound.
        own = {key: inner for key, inner in schema.items() if key != "$schema"}
        error = best_match(bounded(own, registry=Registry()).iter_errors(value))
    except Uncheckable:
        raise
    except RecursionError:
        raise Uncheckable("it refers to itself without end, or is nested too deeply") from None
    except Exception:  # noqa: BLE001  the library raises errors of many kinds for schemas that are none
        raise Uncheckable("it is no JSON Schema") from None
    finally:
        _bound.reset(begun)
    return "" if error is None else _describe_error(error)


def find_unchecked(schema: dict[str, Any]) -> str:
    """A keyword of a schema that the hub does not check, such as `pattern`; empty without one."""
    for one in _objects_in(schema):
        for name in UNCHECKED:
            # A property may have the same name: its value is a schema, and that of these two keywords is not.
            if name in one and not (name in ("pattern", "uniqueItems") and isinstance(one[name], dict)):
                return name
    return ""


def _class_of(schema: dict[str, Any]) -> Any:
    return validators.validator_for(schema, default=validators.Draft202012Validator)


@lru_cache(maxsize=16)
def _bounded(plain: Any) -> Any:
    """The validators of a dialect, each of which looks at its bounds first."""
    checks = {name: _pass if name in UNCHECKED else _timed(check) for name, check in plain.VALIDATORS.items()}
    return validators.extend(plain, checks)


def _timed(check: Any) -> Any:
    def run(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        bound = _bound.get()
        bound.check()
        if check.__name__ == "additionalProperties" and "patternProperties" in schema:
            return
        for error in check(validator, value, instance, schema) or ():
            is_new = not isinstance(error.validator, str)  # the library names it when it leaves this level
            if is_new:
                bound.errors_left -= 1
            bound.check()
            yield error

    return run


def _pass(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    yield from ()


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _describe_error(error: ValidationError) -> str:
    where = "" if error.json_path == "$" else f"{error.json_path.removeprefix('$.')}: "
    return f"{where}{error.message}"[:MAX_FLAW_CHARS]
