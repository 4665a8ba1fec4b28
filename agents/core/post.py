"""The messages between hub processes, and the protocol of their transport.

A message does not name its destination; the arguments of `Post.send` do. Prompts and finals are acknowledged by
messages of their own (PromptTaken or PromptRefused, FinalReceived). A prompt is never sent twice, a final is sent
again until it is received.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from agents.transcript.announcements import (
    AgentFrame,
    CloseAgent,
    LiveFrame,
    PermissionOutcome,
    RecheckAccess,
    SurfaceMessage,
)
from agents.transcript.pieces import Extra, Part, Usage


class PostedPrompt(msgspec.Struct, frozen=True, gc=False, tag="prompt"):
    """A question for an agent whose socket another process holds; the process `home` waits `wait_s` for the reply.

    `asker_id`: the user for whom the session acts while the agent works on the question. `isolated`: the agent may
    not reach other sessions meanwhile. `is_own`: the agent's owner asks. `chain`: the sessions the ask came
    through, this one last. `tells`: the end of the agent's turn ends the ask, with or without a reply.
    """

    chat_id: str
    connection_id: int
    home: str
    asker: str
    text: str
    wait_s: float
    asker_id: int = 0
    isolated: bool = False
    chain: tuple[int, ...] = ()
    tells: bool = False
    task_id: str = ""
    context_id: str = ""
    parts: tuple[Part, ...] = ()
    traceparent: str = ""
    message_id: str = ""
    is_own: bool = False


class PromptTaken(msgspec.Struct, frozen=True, tag="taken"):
    """The prompt was written to the agent's socket. `may_be_direct`: the reply may be a message without a task."""

    chat_id: str
    may_be_direct: bool = False


class PromptRefused(msgspec.Struct, frozen=True, tag="refused"):
    """The prompt was not sent, because the connection is closed."""

    chat_id: str


class PostedChunk(msgspec.Struct, frozen=True, tag="chunk"):
    """A piece of a reply's text; the link numbers the pieces from 0."""

    chat_id: str
    seq: int
    text: str


class ExtraPiece(msgspec.Struct, frozen=True, tag="said"):
    """A piece of a reply that is not its text; numbered with the chunks."""

    chat_id: str
    seq: int
    piece: Extra


class Final(msgspec.Struct, frozen=True, tag="final"):
    """The end of a reply. `text` None: the chunks are the reply. `chunks`: how many pieces came before.

    `reason`: why the turn failed, or what the agent asks for (`TurnFailure`, `Interruption`); else empty.
    `direct`: the answer is a message, not a task. `usage`: what the turn used, if the agent reported it.
    """

    chat_id: str
    chunks: int
    text: str | None = None
    reason: str = ""
    reply_to: str = ""
    direct: bool = False
    usage: Usage | None = None


ReplyMessage = PostedChunk | ExtraPiece | Final


class FinalReceived(msgspec.Struct, frozen=True, tag="got"):
    """The process that waits for the reply received the `Final`."""

    chat_id: str


class Evict(msgspec.Struct, frozen=True, tag="evict"):
    """To the process of a connection: a newer connection took over the session."""

    connection_id: int
    same_program: bool


class Hook(msgspec.Struct, frozen=True, tag="hook"):
    """The agent's program reported an event over REST.

    `is_stop`: the agent's turn is over. `begins`: the agent started to work.
    """

    connection_id: int
    is_stop: bool
    begins: bool = False


class CancelTurn(msgspec.Struct, frozen=True, tag="cancel"):
    """To the process that waits for the reply: the caller canceled this turn."""

    chat_id: str


class Withdrawn(msgspec.Struct, frozen=True, tag="withdrawn"):
    """To the process of a connection, for its agent: no caller waits for the answer to this prompt any more."""

    connection_id: int
    chat_id: str


class WatchForPushes(msgspec.Struct, frozen=True, tag="attend"):
    """To the process that runs a task: from now on its events are also sent as push notifications."""

    task_id: str


class JoinTurn(msgspec.Struct, frozen=True, tag="join"):
    """To the process that runs a turn: another process received the same message and waits for the same turn.

    The turn goes on, and a queued ask keeps its position, when the requests of the receiving process end. `tells`:
    the task's events are published in its feed from now on. `follower`: the name of the joining request, if a
    `LeaveTurn` may follow; without one the turn always goes on.
    """

    chat_id: str
    tells: bool = True
    follower: str = ""


class LeaveTurn(msgspec.Struct, frozen=True, tag="leave"):
    """To the process that runs a turn: the client of a request that joined the turn canceled this request."""

    chat_id: str
    follower: str


# A process that does not know the tag of a message logs `post.unreadable` and drops it.
Message = (
    PostedPrompt
    | PromptTaken
    | PromptRefused
    | PostedChunk
    | ExtraPiece
    | Final
    | FinalReceived
    | CancelTurn
    | Withdrawn
    | WatchForPushes
    | JoinTurn
    | LeaveTurn
    | Evict
    | AgentFrame
    | PermissionOutcome
    | Hook
    | CloseAgent
    | LiveFrame
    | RecheckAccess
    | SurfaceMessage
)
Handler = Callable[[Message], Awaitable[None]]


class Post(Protocol):
    """Carries messages to processes by name, at most once, in the order of one sender."""

    async def send(self, process_id: str, message: Message) -> bool:
        """Send; returns False if the message provably reached no process, True if it may have."""

    async def pass_on(self, process_id: str, message: Message) -> None:
        """Send without waiting for delivery, in order with other messages; waits while the buffer is full."""

    async def start(self, process_id: str, handler: Handler) -> None:
        """Start to receive for this process; returns once messages can arrive."""

    async def is_reachable(self) -> bool:
        """True if messages can be sent at this moment."""

    async def close(self) -> None:
        """Stop receiving."""


class LocalPost:
    """The `Post` of a hub with one process, which has no other process to reach."""

    async def send(self, process_id: str, message: Message) -> bool:
        # The message provably reached no process, so a prompt ends as not delivered and its budget is returned.
        return False

    async def pass_on(self, process_id: str, message: Message) -> None:
        return None

    async def start(self, process_id: str, handler: Handler) -> None:
        return None

    async def is_reachable(self) -> bool:
        return True

    async def close(self) -> None:
        return None
