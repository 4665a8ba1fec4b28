"""Turns as the ledger writes them."""

from datetime import date, datetime, timedelta

from agents.ledger.statements import QueuedRow, TurnRow
from agents.types import Ask, OpenTurn, Outcome
from kit import sql
from kit.durations import seconds

GRACE = timedelta(seconds=seconds(60.0))
PLACE_GRACE = timedelta(seconds=10)  # its process ends the wait itself, in time; on a busy machine a little later
REFUSED_QUESTION_CHARS = 1_000


class Moment:
    """When a batch is decided, by the database's clock, as the database writes it."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.day: date = now.date()
        self.stored = sql.moment(now)
        self._leases: dict[float, object] = {}

    def lease(self, wait_s: float) -> object:
        """Until when a turn holds its claim if nobody ends it."""
        if wait_s not in self._leases:
            self._leases[wait_s] = sql.moment(self.now + timedelta(seconds=wait_s) + GRACE)
        return self._leases[wait_s]


def open_row(turn: OpenTurn, home: str, moment: Moment) -> TurnRow:
    """An admitted ask: open, holding its claim; counted on this day when an agent was asked."""
    ask = turn.ask
    return TurnRow(
        chat_id=ask.chat_id,
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        surface=ask.surface,
        question=turn.text,
        asked_at=moment.stored,
        outcome=None,
        reason="",
        settled_at=None,
        usage_day=moment.day.isoformat() if ask.target.agent_id is not None else None,
        released_at=None,
        claim_until=moment.lease(ask.wait_s),
        home=home,
        connection_id=turn.connection_id,
        repeats=1,
        source_session_id=ask.source.session_id if ask.source else None,
        depth=ask.depth,
        traceparent=ask.traceparent,
        message_key=ask.message_key,
        task_id=ask.task_id,
    )


def queued_row(ask: Ask, wait_s: float, home: str, moment: Moment) -> QueuedRow:
    """An ask that begins to wait for a free agent."""
    return QueuedRow(
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        chat_id=ask.chat_id,
        home=home,
        task_id=ask.task_id,
        message_key=ask.message_key,
        question=ask.question,
        queued_at=moment.stored,
        waits_until=sql.moment(moment.now + timedelta(seconds=wait_s) + PLACE_GRACE),
    )


def refusal_row(ask: Ask, reason: str, moment: Moment) -> TurnRow:
    """A refused ask: ended as it began, nothing counted, nothing held; of its question the beginning."""
    return TurnRow(
        chat_id=ask.chat_id,
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        surface=ask.surface,
        question=ask.question[:REFUSED_QUESTION_CHARS],
        asked_at=moment.stored,
        outcome=Outcome.DENIED.value,
        reason=reason,
        settled_at=moment.stored,
        usage_day=None,
        released_at=moment.stored,
        claim_until=None,
        home="",
        connection_id=None,
        repeats=1,
        source_session_id=ask.source.session_id if ask.source else None,
        depth=ask.depth,
        traceparent=ask.traceparent,
        message_key=ask.message_key,
        task_id=ask.task_id,
    )
