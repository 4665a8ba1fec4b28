"""The events of a turn that are to be kept next, and those of its end."""

from collections.abc import Sequence

from msgspec import Struct

from a2a_bridge.service.tasks.pieces import events_of, events_of_plain
from a2a_bridge.wire.task import State, StatusEvent, Task, TaskEvent, after, timestamp
from agents.core.types import SettledTurn
from agents.models.choices import Outcome
from agents.transcript.pieces import Piece


class Plan(Struct, frozen=True):
    """The task once `events` are kept, and the number of pieces that it contains then."""

    task: Task
    taken: int
    events: Sequence[TaskEvent] = ()

    @property
    def is_new(self) -> bool:
        """True if nothing has happened to the task yet."""
        return not (self.task.seq or self.task.artifacts)


class End(Struct, frozen=True):
    """The change that the end of a turn makes to its task. `written`: its events; None of a plain reply."""

    settled: SettledTurn
    task: Task
    written: Sequence[TaskEvent] | None = None

    @property
    def events(self) -> Sequence[TaskEvent]:
        """The events that the turn added to the task."""
        return events_of_plain(self.task) if self.written is None else self.written


def new_events(task: Task, pieces: Sequence[Piece], *, is_admitted: bool) -> list[TaskEvent]:
    """The events that new pieces make of a task; a submitted task that was admitted begins to work."""
    at = timestamp()
    begins = is_admitted and task.state is State.SUBMITTED
    working = [StatusEvent(task.seq + 1, at, State.WORKING)] if begins else []
    return [*working, *events_of(after(task, working), pieces, at)]


def is_plain(settled: SettledTurn, pieces: Sequence[Piece], *, waits: bool) -> bool:
    """True if a reply is a text and no more. `waits`: the caller sees only the whole reply."""
    if settled.outcome is not Outcome.COMPLETED or settled.reason:
        return False
    return not pieces or (waits and bool(settled.text) and all(isinstance(one, str) for one in pieces))
