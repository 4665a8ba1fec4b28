"""What the calls of this room answer, as types: the handlers build them."""

from typing import Literal, NotRequired, TypedDict

from kit.describe import Time, Uuid
from operators.switchboard import Mode


class PromptSent(TypedDict):
    """The prompt is on its way; the reply comes as an event. `routedToAgent`: whom its text named, without @."""

    ok: Literal[True]
    chatId: str
    ts: Time
    routedToAgent: NotRequired[str]


class RouteAnswer(TypedDict):
    """What became of a routed prompt. A timeout is `ok: false`, with `timedOut` and `error`."""

    ok: bool
    chatId: str
    sessionId: Uuid
    mode: Mode
    reply: NotRequired[str]
    replyTs: NotRequired[Time]
    timedOut: NotRequired[Literal[True]]
    error: NotRequired[str]


class ProbeSent(TypedDict):
    """One peer of a probe: `sent`, or why not."""

    peer: str
    sessionId: Uuid | None
    status: str


class ProbeAnswer(TypedDict):
    """Whom a probe told."""

    dispatched: list[ProbeSent]
