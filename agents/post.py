"""What travels between hub processes, and the contract of who carries it.

Each message names no process: the post addresses it. Prompts and finals are receipted by messages of their own
(Taken or Refused, Got); a prompt is never sent twice, a final is sent again until it is Got.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from agents.pieces import ApprovalDecided, Extra, Part


class Prompt(msgspec.Struct, frozen=True, tag="prompt"):
    """A question for an agent whose socket another process holds; `home` waits `wait_s` for the reply.

    `asker_id` drives the session while the agent works on it; `isolated`: it may not reach other sessions
    meanwhile. `chain`: the sessions the ask came through, this one last. `tells`: the end of the agent's turn
    ends it, reply or not.
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


class Taken(msgspec.Struct, frozen=True, tag="taken"):
    """The prompt went to the agent's socket. `may_be_direct`: its reply may be no more than an answer."""

    chat_id: str
    may_be_direct: bool = False


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The prompt did not leave: the connection is gone."""

    chat_id: str


class Chunk(msgspec.Struct, frozen=True, tag="chunk"):
    """A piece of a reply; the link numbers them from 0."""

    chat_id: str
    seq: int
    text: str


class Said(msgspec.Struct, frozen=True, tag="said"):
    """A piece of a reply that is not its text; numbered with the chunks."""

    chat_id: str
    seq: int
    piece: Extra


class Final(msgspec.Struct, frozen=True, tag="final"):
    """The end of a reply. `text` None: the chunks are the reply. `chunks`: how many pieces came before.

    `reason`: why it failed, or what it asks for (`Failure`, `Interruption`), else empty. `direct`: the answer is a
    message, not a task.
    """

    chat_id: str
    chunks: int
    text: str | None = None
    reason: str = ""
    reply_to: str = ""
    direct: bool = False


class Got(msgspec.Struct, frozen=True, tag="got"):
    """The final reached its home."""

    chat_id: str


class Evict(msgspec.Struct, frozen=True, tag="evict"):
    """A newer connection took over this one's session."""

    connection_id: int
    same_program: bool


class Tell(msgspec.Struct, frozen=True, tag="tell"):
    """A finished frame for the agent of a connection; its delivery is not confirmed, and it may be lost.

    `piece`: what the frame says is told to the caller of the turn `chat_id` too.
    """

    connection_id: int
    frame: msgspec.Raw
    chat_id: str = ""
    piece: ApprovalDecided | None = None


class Hook(msgspec.Struct, frozen=True, tag="hook"):
    """The agent's program reported an event over REST. `is_stop`: its turn is over; `begins`: it set to work."""

    connection_id: int
    is_stop: bool
    begins: bool = False


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """To the process that waits: the caller of this turn wants it no more."""

    chat_id: str


class Withdrawn(msgspec.Struct, frozen=True, tag="withdrawn"):
    """To the agent of a connection: nobody wants the answer to this prompt any more."""

    connection_id: int
    chat_id: str


class Attend(msgspec.Struct, frozen=True, tag="attend"):
    """To the process that runs a task: from now on somebody is told of it who does not follow it."""

    task_id: str


class Join(msgspec.Struct, frozen=True, tag="join"):
    """To the process that answers a message: it came again elsewhere, and an answer is awaited there too.

    The ask keeps its place in a line whatever connections end. `tells`: its task is told from now on.
    """

    chat_id: str
    tells: bool = True


class Dismiss(msgspec.Struct, frozen=True, tag="dismiss"):
    """The session of a connection is gone: the agent is told not to come back."""

    connection_id: int
    reason: str


class Live(msgspec.Struct, frozen=True, tag="live"):
    """A finished frame for the operators of a session whom the receiving process holds."""

    session_id: int
    frame: msgspec.Raw


class Oust(msgspec.Struct, frozen=True, tag="oust"):
    """A user lost their share of a session, or part of it: their operators' sockets look again."""

    session_id: int
    user_id: int


# A process that does not know the tag of a message logs `post.unreadable` and drops it.
Message = (
    Prompt
    | Taken
    | Refused
    | Chunk
    | Said
    | Final
    | Got
    | Cancel
    | Withdrawn
    | Attend
    | Join
    | Evict
    | Tell
    | Hook
    | Dismiss
    | Live
    | Oust
)
Handler = Callable[[Message], Awaitable[None]]


class Post(Protocol):
    """Carries messages to processes by name, at most once, in the order of one sender."""

    async def send(self, process_id: str, message: Message) -> bool:
        """Send; False when it provably reached nobody, True when it may have."""

    async def pass_on(self, process_id: str, message: Message) -> None:
        """Send without waiting for it to arrive, in order with the rest; it may wait for room."""

    async def start(self, process_id: str, handler: Handler) -> None:
        """Receive for this process from now on; returns once messages can arrive."""

    async def close(self) -> None:
        """Stop receiving."""


class LocalPost:
    """The post of a hub that is one process: nobody else is there to reach."""

    async def send(self, process_id: str, message: Message) -> bool:
        # Provably reached no process, so a prompt ends as not delivered and its unit of budget is given back.
        return False

    async def pass_on(self, process_id: str, message: Message) -> None:
        return None

    async def start(self, process_id: str, handler: Handler) -> None:
        return None

    async def close(self) -> None:
        return None
