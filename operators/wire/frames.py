"""The frames of `/cli`, one JSON text message each (docs/reference/frames.md), and the JSON of operators' calls.

Each shape serves the wire and the description. Unknown fields of a frame are ignored, those of a body refused.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from agents.transcript.announcements import FROM_LIVE, LiveMessage
from kit import strict_json
from kit.asgi import RequestRefused
from kit.describe import CALLER, DescribedSocket, Time, Uuid
from kit.strict_json import UnreadableText

MAX_ATTACHMENTS = 50
MAX_PROBED = 50

Mode = Literal["ask", "tell"]
FileId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
PromptText = Annotated[str, Meta(min_length=1)]
PeerName = Annotated[str, Meta(min_length=1, max_length=200)]
Attachments = Annotated[list[FileId], Meta(max_length=MAX_ATTACHMENTS)]
Body = TypeVar("Body", bound=Struct)


class PromptBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt for a session; `text` may be empty when there are attachments, by file id."""

    text: str = ""
    attachments: Attachments | None = None


class RouteBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt for a peer: `ask` waits for the reply, `tell` does not."""

    prompt: PromptText
    mode: Mode


class ProbeBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A prompt for many peers; null: all that are online."""

    prompt: PromptText
    peers: Annotated[list[PeerName], Meta(max_length=MAX_PROBED)] | None = None


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
    """The peers that a probe reached."""

    dispatched: list[ProbeSent]


def read_body(body: bytes, shape: type[Body]) -> Body:
    """The struct of a body.

    Raises:
        RequestRefused: 400, it is not JSON that a sound program sends, or not of that shape.
    """
    try:
        return msgspec.convert(strict_json.read(body), shape)
    except (UnreadableText, msgspec.ValidationError) as wrong:
        raise RequestRefused(400, "validation_failed", str(wrong)) from None


MAX_FRAME_BYTES = 1_048_576
MAX_OP_MESSAGE_CHARS = 65_536
MAX_MENTIONS = 50

RoleWord = Literal["viewer", "prompter", "approver", "owner"]
SessionId = Annotated[Uuid, Meta(max_length=64)]
Login = Annotated[str, Meta(min_length=1, max_length=64)]


class OperatorFrame(Struct, frozen=True, rename="camel", tag_field="type"):
    """Any frame; its class says its `type`."""


class Subscribe(OperatorFrame, frozen=True, tag="subscribe"):
    """Show me what happens in this session. Takes the role viewer."""

    session_id: SessionId


class Unsubscribe(OperatorFrame, frozen=True, tag="unsubscribe"):
    """Show me nothing more of it."""

    session_id: SessionId


class Prompt(OperatorFrame, frozen=True, tag="prompt"):
    """Prompt a session. Takes the role prompter. `source_session_id`: the one attached to, when another."""

    session_id: SessionId
    text: str = ""
    source_session_id: SessionId | None = None
    attachments: Attachments | None = None


class OpMessage(OperatorFrame, frozen=True, tag="op_message"):
    """Tell the other operators something; the agent never sees it. Takes the role prompter."""

    session_id: SessionId
    text: Annotated[str, Meta(min_length=1, max_length=MAX_OP_MESSAGE_CHARS)]
    mentions: Annotated[list[Login], Meta(max_length=MAX_MENTIONS)] | None = None


class Approval(OperatorFrame, frozen=True, tag="approval"):
    """Decide a permission request. Takes the role approver; the first decision wins."""

    session_id: SessionId
    request_id: Annotated[str, Meta(min_length=1, max_length=128)]
    decision: Literal["allow", "deny"]
    message: Annotated[str, Meta(max_length=4096)] | None = None


class Route(OperatorFrame, frozen=True, tag="route"):
    """Prompt a peer by name, as `POST /peers/{peer}/route` does; the reply comes as an event of its session."""

    peer: PeerName
    prompt: PromptText
    mode: Mode


class Subscribed(OperatorFrame, frozen=True, tag="subscribed"):
    """The live view of the session begins; `role` is yours."""

    session_id: Uuid
    role: RoleWord


class Ack(OperatorFrame, frozen=True, tag="ack"):
    """The last frame was taken."""

    ok: Literal[True] = True


class Error(OperatorFrame, frozen=True, tag="error"):
    """auth_failed and token_revoked end the connection; every other code leaves it open."""

    code: str
    message: str
    ok: Literal[False] = False


FROM_OPERATOR: dict[str, type[OperatorFrame]] = {
    "subscribe": Subscribe,
    "unsubscribe": Unsubscribe,
    "prompt": Prompt,
    "op_message": OpMessage,
    "approval": Approval,
    "route": Route,
}
TO_OPERATOR: tuple[type[OperatorFrame] | type[LiveMessage], ...] = (Subscribed, Ack, Error, *FROM_LIVE)
SOCKET = DescribedSocket(
    path="/cli",
    summary="An operator watches sessions, prompts them and decides their permission requests.",
    security=CALLER,
    from_client=FROM_OPERATOR.values(),
    to_client=TO_OPERATOR,
)


class BadOperatorFrame(Exception):
    """A message that is no frame; `error` is what to tell the operator, the connection stays."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code)
        self.error = Error(code=code, message=message)


encode = msgspec.json.Encoder().encode


def decode(text: str | None) -> OperatorFrame:
    """The frame that one message holds.

    Raises:
        BadOperatorFrame: not JSON, no `type`, an unknown type, or fields of the wrong shape.
    """
    value = _read(text)
    name = value.get("type")
    if not isinstance(name, str):
        raise BadOperatorFrame("bad_frame", "want a member type, a string")
    if name not in FROM_OPERATOR:
        raise BadOperatorFrame("unknown_type", f"this hub has no frame {name[:60]!r}")
    try:
        return msgspec.convert(value, FROM_OPERATOR[name])
    except msgspec.ValidationError as wrong:
        raise BadOperatorFrame("bad_frame", str(wrong)[:300]) from None


def _read(text: str | None) -> Mapping[str, object]:
    if text is None:
        raise BadOperatorFrame("bad_frame", "want JSON text")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_FRAME_BYTES:
        raise BadOperatorFrame("bad_frame", f"a frame holds at most {MAX_FRAME_BYTES} bytes")
    try:
        value = strict_json.read(text)
    except UnreadableText as wrong:
        raise BadOperatorFrame("bad_frame", str(wrong)) from None
    if not isinstance(value, dict):
        raise BadOperatorFrame("bad_frame", "want one JSON object")
    return value
