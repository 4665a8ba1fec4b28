"""The work items of the ledger, and their results."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from agents.core.errors import Denied
from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.transcript.pieces import Usage
from agents.transcript.recording import NewEvent
from kit import sql


class Admit(Struct, frozen=True):
    """Decide this ask. Result: OpenTurn, or raises Denied, NotPublished, MustWait. `in_queue`: it waits."""

    ask: Ask
    in_queue: bool = False


class Deny(Struct, frozen=True):
    """Audit an ask refused elsewhere: over its rate, or one that left the queue (`in_queue`). Result: None."""

    ask: Ask
    denied: Denied
    in_queue: bool = False


ExtraWrites = Callable[[SettledTurn], Sequence[sql.Query]]


class Settle(Struct, frozen=True):
    """End a turn. Result: SettledTurn, as stored, whichever ending was first.

    `extra_writes`: what a surface writes in the same transaction, given that result; it is called in the ledger's
    thread, again when the batch is tried again. `has_extra_writes`: not given up, see `SettledTurn`.
    """

    turn: OpenTurn
    ending: TurnEnding
    extra_writes: ExtraWrites | None = None
    has_extra_writes: bool = True


class Withdraw(Struct, frozen=True):
    """End an ask unsent, and delete its place, where a commit whose answer was lost wrote them. Result: None."""

    ask: Ask


class Release(Struct, frozen=True):
    """Free the lingering claim of one ended turn, or all of a session's. Result: None.

    `late`: the reply that came after the end; the transcript keeps it. `usage`: what the agent reported with it.
    """

    chat_id: str | None = None
    session_id: int | None = None
    late: str = ""
    usage: Usage | None = None


class Record(Struct, frozen=True):
    """Write an event of a session. Result: None."""

    event: NewEvent


class Touch(Struct, frozen=True):
    """Note that a credential was just used. Result: None."""

    credential_id: int


Work = Admit | Deny | Settle | Withdraw | Release | Record | Touch
Result = OpenTurn | SettledTurn | Exception | None
