"""The checks of parameters that all dialects share."""

import base64
import binascii
from collections.abc import Iterable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct

from a2a_bridge.wire.requests import InputNeed, RateTask, Thumb
from agents.models.agent import HUB_MODES
from agents.models.rating import MAX_NOTE_CHARS
from agents.transcript.pieces import Part
from kit.asgi import media_type_of
from kit.jsonrpc import INVALID_PARAMS, RpcError

Shown = TypeVar("Shown")

MAX_ID_CHARS = 128
MAX_PARTS = 64
ANY_FILE = "application/octet-stream"  # of a file without a media type
INPUT_MODES = frozenset({"", *HUB_MODES})  # none named, or one of every card's
OUTPUT_MODES = frozenset({*HUB_MODES, "text/*", "application/*", "*/*", "*", "text"})


class RateParams(Struct, frozen=True):
    """Parameters of RateTask: a task, and the thumb for its answer; `none` takes the thumb away."""

    id: str
    rating: Thumb
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS)] = ""


def read_rate(params: Any) -> RateTask:
    """RateTask."""
    rated: RateParams = read_params(RateParams, params)
    return RateTask(task_id=rated.id, rating=rated.rating, note=rated.note)


def read_params(kind: type[Any], params: Any, *, role: str = "", within: str = "") -> Any:
    """Check and build the parameters of a method. `role`: the only one a message may have; `within`: their name.

    Raises:
        RpcError: -32602, naming the field.
    """
    if type(params) is not dict:
        raise invalid("params", "params must be an object")
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as wrong:
        said = str(wrong).replace("`$.", f"`{within}." if within else "`").replace("`$`", within or "params")
        text, _, place = said.rpartition(" - at `")
        field = (place if text else said.partition("`")[2]).partition("`")[0]  # a missing member has no place
        raise invalid(field, f"{field}: want {role}" if role and field == "message.role" else said) from None


def invalid(field: str, message: str) -> RpcError:
    """-32602 that names its field."""
    return RpcError(INVALID_PARAMS, message, field=field)


def check_printable(value: str, where: str) -> str:
    """The value.

    Raises:
        RpcError: -32602, it holds what cannot be printed.
    """
    if not value.isprintable():
        raise invalid(where, f"{where}: want printable text")
    return value


def check_base64(raw: str, where: str) -> str:
    """Base64 of either alphabet as the standard one.

    Raises:
        RpcError: -32602, it is neither.
    """
    standard = raw.replace("-", "+").replace("_", "/")
    try:
        base64.b64decode(standard, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(where, f"{where}: not base64") from None
    return standard


def check_content(part: Any, where: str) -> None:
    """Check what a part holds; `text`, `raw`, `url` and `data` are UNSET where it has none.

    Raises:
        RpcError: -32602, it holds not exactly one thing, or what is not base64.
    """
    has_bytes = part.raw is not UNSET
    if has_bytes + (part.text is not UNSET) + (part.url is not UNSET) + (part.data is not UNSET) != 1:
        raise invalid(where, f"{where}: want exactly one of text, raw, url, data")
    if has_bytes:
        check_base64(part.raw, f"{where}.raw")


def plain_modes(modes: Iterable[str]) -> tuple[str, ...]:
    """Modes without parameters, in lower case."""
    return tuple(mode.strip().lower().partition(";")[0] for mode in modes)


def only_modes(accepted: Iterable[str]) -> tuple[str, ...]:
    """The modes that a caller accepts, if none of them is one that every agent has.

    An empty list says nothing: older clients always send one.
    """
    plain = plain_modes(accepted)
    return () if OUTPUT_MODES.intersection(plain) else plain


def is_of_modes(media_type: str, modes: Iterable[str]) -> bool:
    """True if content of a media type fits one of these modes, which may be such as `image/*`."""
    main = media_type.partition("/")[0]
    return not {media_type, f"{main}/*", "*/*", "*"}.isdisjoint(modes)


def needs_of(parts: Iterable[tuple[str, Part]], *, suffix: str = "") -> tuple[InputNeed, ...]:
    """The inputs besides text and JSON that an agent must take to get these parts, each with its name in errors.

    `suffix`: what the error of a file adds to that.
    """
    needs = []
    for where, part in parts:
        media_type = media_type_of(part.media_type)
        if part.is_file:
            needs.append(InputNeed(f"{where}{suffix}", media_type or ANY_FILE, is_file=True))
        elif media_type not in INPUT_MODES:
            needs.append(InputNeed(f"{where}.mediaType", media_type, is_file=False))
    return tuple(needs)


def last(messages: list[Shown], length: int | None) -> list[Shown]:
    """The most recent of a history, all when no length is given."""
    return messages if length is None else messages[max(len(messages) - length, 0) :]
