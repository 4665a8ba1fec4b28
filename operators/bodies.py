"""The JSON bodies that operators send, checked by one line each; a member that is not known is refused."""

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from kit import strict_json
from kit.strict_json import Unsound
from operators.peering import MOST_PROBED
from operators.switchboard import Mode

MAX_ATTACHMENTS = 50

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


class BadBody(Exception):
    """A body that is not what the call takes; its text is public and names the member."""


def read(body: bytes, shape: type[Body]) -> Body:
    """A body as its struct.

    Raises:
        BadBody: it is not JSON that a sound program sends, or not of that shape.
    """
    try:
        return msgspec.convert(strict_json.read(body), shape)
    except (Unsound, msgspec.ValidationError) as wrong:
        raise BadBody(str(wrong)) from None
