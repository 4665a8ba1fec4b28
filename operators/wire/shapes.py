"""The JSON that operators' calls take and answer: each shape serves the wire and the description."""

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kit import strict_json
from kit.asgi import RequestRefused
from kit.describe import Time, Uuid
from kit.strict_json import UnreadableText

MAX_ATTACHMENTS = 50
MOST_PROBED = 50

Mode = Literal["ask", "tell"]
FileId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Said = Annotated[str, Meta(min_length=1)]
PeerName = Annotated[str, Meta(min_length=1, max_length=200)]
Attachments = Annotated[list[FileId], Meta(max_length=MAX_ATTACHMENTS)]
Body = TypeVar("Body", bound=Struct)


class PromptBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt for a session; `text` may be empty when there are attachments, by file id."""

    text: str = ""
    attachments: Attachments | None = None


class RouteBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt for a peer: `ask` waits for the reply, `tell` does not."""

    prompt: Said
    mode: Mode


class ProbeBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt for many peers; null: all that are online."""

    prompt: Said
    peers: Annotated[list[PeerName], Meta(max_length=MOST_PROBED)] | None = None


class PromptSent(Struct, frozen=True, rename="camel", kw_only=True):
    """The prompt is on its way; the reply comes as an event. `routedToAgent`: whom its text named, without @."""

    ok: Literal[True]
    chat_id: str
    ts: Time
    routed_to_agent: str | UnsetType = UNSET


class RouteAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """The end of a routed prompt. A timeout is `ok: false`, with `timedOut` and `error`.

    `left_out`: a line for each part of the reply that is not in its text.
    """

    ok: bool
    chat_id: str
    session_id: Uuid
    mode: Mode
    reply: str | UnsetType = UNSET
    reply_ts: Time | UnsetType = UNSET
    left_out: list[str] | UnsetType = UNSET
    timed_out: Literal[True] | UnsetType = UNSET
    error: str | UnsetType = UNSET


class ProbeSent(Struct, frozen=True, rename="camel"):
    """One peer of a probe: `sent`, or why not."""

    peer: str
    session_id: Uuid | None
    status: str


class ProbeAnswer(Struct, frozen=True):
    """Whom a probe told."""

    dispatched: list[ProbeSent]


def read(body: bytes, shape: type[Body]) -> Body:
    """A body as its struct.

    Raises:
        RequestRefused: 400, it is not JSON that a sound program sends, or not of that shape.
    """
    try:
        return msgspec.convert(strict_json.read(body), shape)
    except (UnreadableText, msgspec.ValidationError) as wrong:
        raise RequestRefused(400, "validation_failed", str(wrong)) from None
