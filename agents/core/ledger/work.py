"""The work items of the ledger, their results, and the work of a batch by its kind."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agents.core.errors import Denied
from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.pieces import Usage
from agents.transcript.recording import NewEvent
from kit import sql


class Admit(Struct, frozen=True):
    """Decide this ask. Result: OpenTurn, or raises Denied, NotPublished, MustWait. `in_queue`: the ask has a
    position.
    """

    ask: Ask
    in_queue: bool = False


class Deny(Struct, frozen=True):
    """Write the audit row of an ask over its rate, or of one that left the queue (`in_queue`). Result: None."""

    ask: Ask
    denied: Denied
    in_queue: bool = False


ExtraWrites = Callable[[SettledTurn], Sequence[sql.Query]]


class Settle(Struct, frozen=True):
    """End a turn. Result: SettledTurn, as stored, whichever ending was first.

    `extra_writes`: returns what a surface writes in the same transaction, given that result; the ledger's thread
    calls it, again when the batch is tried again. `has_extra_writes`: False if the worker gave up these writes,
    see `SettledTurn`.
    """

    turn: OpenTurn
    ending: TurnEnding
    extra_writes: ExtraWrites | None = None
    has_extra_writes: bool = True


class Withdraw(Struct, frozen=True):
    """End an ask as not sent, and delete its position, in case a commit wrote them unnoticed. Result: None."""

    ask: Ask


class Release(Struct, frozen=True):
    """Free the lingering claim of one ended turn, or all lingering claims of a session. Result: None.

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


class SortedWork:
    """The work of a batch by its kind; `admits` and `settles` by index in the batch.

    `used`: the usage that agents reported for turns, by chat id; the first report stands. `session_ids`: the
    sessions that the batch is about; `source_ids`: the sessions that asked. `positions`: the chat ids of queued
    asks whose rows are to be deleted; the batch removes the asks that go on waiting. `returns_budget`: True if an
    end returns the budget of its ask.
    """

    def __init__(self, batch: Sequence[Work], *, is_retry: bool) -> None:
        self.is_retry = is_retry
        self.size = len(batch)
        self.admits: dict[int, Admit] = {}
        self.settles: dict[int, Settle] = {}
        self.denies: list[Deny] = []
        self.withdrawn: list[Ask] = []
        self.releases: list[Release] = []
        self.touched: list[int] = []
        self.events: list[NewEvent] = []
        self.used: dict[str, Usage] = {}
        self.session_ids: set[int] = set()
        self.source_ids: set[int] = set()
        self.positions: set[str] = set()
        self.returns_budget = False
        for i, work in enumerate(batch):
            match work:
                case Admit(ask=ask, in_queue=in_queue):
                    self.admits[i] = work
                case Settle(turn=turn, ending=ending):
                    self.settles[i] = work
                    self.returns_budget = self.returns_budget or ending.returns_budget
                    ask, in_queue = turn.ask, False
                    if ending.usage is not None:
                        self.used.setdefault(ask.chat_id, ending.usage)
                case Deny(ask=ask, in_queue=in_queue):
                    self.denies.append(work)
                case Withdraw(ask=ask):
                    self.withdrawn.append(ask)
                    in_queue = ask.queues
                case Release(chat_id=chat_id, session_id=session_id, usage=usage):
                    self.releases.append(work)
                    if session_id is not None:
                        self.session_ids.add(session_id)
                    if chat_id and usage:
                        self.used.setdefault(chat_id, usage)
                    continue
                case Record(event=event):
                    self.events.append(event)
                    continue
                case Touch(credential_id=credential_id):
                    self.touched.append(credential_id)
                    continue
            self.session_ids.add(ask.target.session_id)
            if ask.source is not None:
                self.source_ids.add(ask.source.session_id)
            # A new ask of a retried batch may have a position too, from a commit whose answer was lost.
            if in_queue or (is_retry and ask.queues and not isinstance(work, Settle)):
                self.positions.add(ask.chat_id)

    @property
    def only_ends(self) -> bool:
        """True if the work only ends different turns and records events, and nothing has to be read before."""
        ends = self.settles.values()
        return (
            len(ends) + len(self.events) == self.size
            and not (self.is_retry or self.returns_budget or self.source_ids)
            and len({work.turn.ask.chat_id for work in ends}) == len(ends)
        )

    def drop_sources_except(self, there: Collection[int]) -> None:
        """Remove asking sessions that were deleted meanwhile; their turns go on without an asking session."""
        self.denies = [replace(one, ask=_without_gone_source(one.ask, there)) for one in self.denies]
        for i, one in self.admits.items():
            self.admits[i] = replace(one, ask=_without_gone_source(one.ask, there))
        for i, end in self.settles.items():
            turn = replace(end.turn, ask=_without_gone_source(end.turn.ask, there))
            self.settles[i] = replace(end, turn=turn)


def _without_gone_source(ask: Ask, there: Collection[int]) -> Ask:
    return ask if ask.source is None or ask.source.session_id in there else replace(ask, source=None)


def without_optional_writes(work: Work) -> Settle | None:
    """The same end without the writes that may have failed; None if no such write is left.

    The first call leaves out what the surface writes, the second one stores a failure without the reply. Otherwise
    the worker would try for long to end a turn that the database refuses.
    """
    if not isinstance(work, Settle):
        return None
    if work.extra_writes is not None:
        return replace(work, extra_writes=None, has_extra_writes=False)
    if work.ending.outcome is not Outcome.COMPLETED:
        return None
    ending = replace(work.ending, outcome=Outcome.FAILED, reason=TurnFailure.NOT_RECORDED, text="")
    return replace(work, ending=ending)
