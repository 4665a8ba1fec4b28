"""The questions of one user to agents, newest first: the rows of the audit, read by their caller.

A page reads a bounded number of rows, whatever it looks for (docs/adr/0103).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from msgspec import Meta, Struct

from agents.core.figures import moments_of
from agents.models import Agent, Process, QueuedAsk, Turn
from agents.models.choices import Interruption, Outcome, TurnFailure
from agents.models.session import alive_since
from clawbridge.shapes import QuestionState
from kit.clock import db_now
from kit.search import filter_by_words

SEARCHED = 10_000
LATELY = 1_000
MAX_AGENTS = 50
MAX_QUEUED = 50
MAX_LIMIT = 50
MAX_CHARS = 4_000  # of a question
MAX_WORDS = 6
STATES: Mapping[str | None, QuestionState] = {
    None: "open",
    Outcome.COMPLETED: "completed",
    Outcome.FAILED: "failed",
    Outcome.DENIED: "denied",
}
STATES_BY_REASON: Mapping[tuple[str, str], QuestionState] = {
    (Outcome.COMPLETED, Interruption.INPUT_REQUIRED): "input_required",
    (Outcome.COMPLETED, Interruption.AUTH_REQUIRED): "auth_required",
    (Outcome.FAILED, TurnFailure.REJECTED): "rejected",
    (Outcome.FAILED, TurnFailure.CANCELED): "canceled",
    (Outcome.FAILED, TurnFailure.AGENT_CANCELED): "canceled",
}
WAITING: Collection[QuestionState] = ("input_required", "auth_required")
WANTED = {
    "q": "at most 200 characters",
    "agent": "a handle of at most 200 characters",
    "state": f"one of {', '.join(get_args(QuestionState))}",
    "task": "an id of at most 64 characters",
    "day": "a date such as 2026-03-01",
    "tz": "a time zone of at most 64 characters",
    "before": "the `next` of a page",
    "limit": f"a number from 1 to {MAX_LIMIT}",
}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NEWEST_FIRST = ("-asked_at", "-pk")
TEXT = "begin_of_question"

Rows = TypeVar("Rows", bound=QuerySet[Any])
Typed = Annotated[str, Meta(max_length=200)]
ZoneName = Annotated[str, Meta(max_length=64)]
Cursor = Annotated[str, Meta(pattern=r"^[0-9]{1,17}\.[0-9]{1,18}$")]
Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]
TaskId = Annotated[str, Meta(max_length=64)]


@dataclass(frozen=True, slots=True)
class QuestionPosition:
    """The place of a row in the list."""

    asked_at: datetime
    pk: int

    @property
    def cursor(self) -> str:
        """The `before` of a query for the rows behind this one."""
        return f"{(self.asked_at - EPOCH) // timedelta(microseconds=1)}.{self.pk}"

    @property
    def older(self) -> Q:
        """The rows behind this one. The first condition is redundant: with it the database uses the index."""
        behind = Q(asked_at__lt=self.asked_at) | Q(asked_at=self.asked_at, pk__lt=self.pk)
        return Q(asked_at__lte=self.asked_at) & behind

    @property
    def as_new(self) -> Q:
        """The query for this row and the rows before it."""
        before = Q(asked_at__gt=self.asked_at) | Q(asked_at=self.asked_at, pk__gte=self.pk)
        return Q(asked_at__gte=self.asked_at) & before


class QuestionQuery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A query for questions. `q`: words that are each in it; `agent`: a handle; `day`: in the time zone `tz`.

    `task`: the id of a task, which may have several questions.
    """

    q: Typed = ""
    agent: Typed = ""
    state: QuestionState | None = None
    task: TaskId = ""
    day: date | None = None
    tz: ZoneName = "UTC"
    before: Cursor | None = None
    limit: Limit = 25

    @property
    def is_filtered(self) -> bool:
        """True if the query leaves some questions out."""
        return bool(self.q or self.agent or self.state or self.task or self.day)

    @property
    def words(self) -> list[str]:
        """The words to look for."""
        return self.q.split()[:MAX_WORDS]

    @property
    def handle(self) -> str:
        """The agent's handle without its `@`."""
        return self.agent.strip().removeprefix("@")

    @property
    def position(self) -> QuestionPosition | None:
        """The place in the list before which the page begins."""
        if self.before is None:
            return None
        us, _, pk = self.before.partition(".")
        return QuestionPosition(EPOCH + timedelta(microseconds=int(us)), int(pk))

    @property
    def hours(self) -> tuple[datetime, datetime] | None:
        """The times at which the day and the next day begin."""
        return None if self.day is None else moments_of(self.day, self.tz)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """One question. `is_askable`: whether its caller may ask the agent now, and so read the task.

    `state`: how its turn stands. A task that waited for its caller may have been answered or canceled since.
    `text` is at most MAX_CHARS long, and blank once it was kept as long as the agent's owner wants.
    """

    chat_id: str
    handle: str
    is_askable: bool
    text: str
    is_cut: bool
    asked_at: datetime
    state: QuestionState
    outcome: str | None = None
    reason: str = ""
    latency_ms: int | None = None
    repeats: int = 1
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class AskedPage:
    """A page of questions. `next`: the `before` of the page after it; None where there is none.

    A page that looks for something may be short, or empty, and have a next one: it read SEARCHED rows.
    """

    questions: Sequence[AskedQuestion]
    next: str | None


def read_query(given: Mapping[str, str]) -> QuestionQuery:
    """A query string's values as a query; empty ones and unknown names are left out.

    Raises:
        ValueError: with a public text; a value has the wrong form.
    """
    known = {
        name: "".join(each if each.isprintable() else " " for each in value).strip()
        for name, value in given.items()
        if name in QuestionQuery.__struct_fields__
    }
    try:
        query = msgspec.convert(
            {name: value for name, value in known.items() if value}, QuestionQuery, strict=False
        )
    except msgspec.ValidationError as wrong:
        name = str(wrong).rpartition("$.")[2].removesuffix("`")  # the text ends with the path of the value
        raise ValueError(f"{name}: want {WANTED[name]}") from None
    try:
        _ = query.hours, query.position
    except (ValueError, OverflowError, OSError, LookupError):
        raise ValueError("no such day, time zone or cursor") from None
    return query


def find_questions(user_id: int, query: QuestionQuery) -> AskedPage:
    """A page of what this user asked of agents, newest first; on the first page those that wait come first."""
    asked, end = _asked(user_id, query)
    found = list(_cut(asked).select_related("agent")[: query.limit + 1])
    shown = found[: query.limit]
    queued = _queued(user_id, query)
    agents = Agent.objects.askable_by(user_id).filter(
        pk__in={one.agent_id for rows in (queued, shown) for one in rows}
    )
    askable = set(agents.values_list("pk", flat=True))
    questions = [
        AskedQuestion(**_common(one, askable), asked_at=one.queued_at, state="queued") for one in queued
    ] + [_of_turn(one, askable) for one in shown]
    last = QuestionPosition(shown[-1].asked_at, shown[-1].pk) if len(found) > query.limit else end
    return AskedPage(questions, last.cursor if last else None)


def asked_agents(user_id: int) -> list[str]:
    """The handles of the agents that this user asked lately, to choose from."""
    lately = Turn.objects.asked_by(user_id).order_by(*NEWEST_FIRST).values_list("agent_id", flat=True)[:LATELY]
    agents = Agent.objects.filter(pk__in=set(lately)).order_by("handle_key")
    return list(agents.values_list("handle", flat=True)[:MAX_AGENTS])


def _asked(user_id: int, query: QuestionQuery) -> tuple[QuerySet[Turn], QuestionPosition | None]:
    """The turns that a query means, and the place up to which it looks at turns; None if it looks at all."""
    asked = Turn.objects.asked_by(user_id).order_by(*NEWEST_FIRST)
    if query.state == "queued":
        return asked.none(), None
    if query.position is not None:
        asked = asked.filter(query.position.older)
    asked = _of_day(asked, query, "asked_at")
    at_end = asked.values_list("asked_at", "pk")[SEARCHED - 1 : SEARCHED + 1]
    end = QuestionPosition(*at_end[0]) if len(at_end) == 2 else None
    if end is not None:
        asked = asked.filter(end.as_new)
    if query.state is not None:
        asked = asked.filter(_of_state(query.state))
    return _matching(asked, query), end


def _of_state(state: QuestionState) -> Q:
    """The turns that are in this state, or may be: the task of one that waited may be canceled, or answered."""
    found = Q()
    for outcome, plain in STATES.items():
        if plain == state:
            others = [reason for (of, reason) in STATES_BY_REASON if of == outcome != Outcome.COMPLETED]
            found |= Q(outcome=outcome) & ~Q(reason__in=others)
    for (outcome, reason), named in STATES_BY_REASON.items():
        if named == state or (state == "canceled" and named in WAITING):
            found |= Q(outcome=outcome, reason=reason)
    return found


def _queued(user_id: int, query: QuestionQuery) -> list[QueuedAsk]:
    """The asks that wait for a free agent, in processes that live."""
    if query.position is not None or query.state not in (None, "queued"):
        return []
    living = Process.objects.filter(beat_at__gt=alive_since(db_now())).values("pk")
    waiting = QueuedAsk.objects.filter(caller=user_id, home__in=living).order_by("-pk")
    return list(_cut(_of_day(_matching(waiting, query), query, "queued_at")).select_related("agent")[:MAX_QUEUED])


def _of_day(rows: Rows, query: QuestionQuery, asked_at: str) -> Rows:
    if query.hours is None:
        return rows
    first, end = query.hours
    return rows.filter(**{f"{asked_at}__gte": first, f"{asked_at}__lt": end})


def _matching(rows: Rows, query: QuestionQuery) -> Rows:
    """The rows of the wanted agent and task that contain the wanted words."""
    if query.handle:
        rows = rows.filter(agent__handle_key=query.handle.lower())
    if query.task:
        rows = rows.filter(task_id=query.task)
    return filter_by_words(rows, "question", query.words)


def _cut(rows: Rows) -> Rows:
    """The rows with the beginnings of their questions, so that long questions are not read whole."""
    return rows.defer("question").annotate(**{TEXT: Left("question", MAX_CHARS + 1)})


def _of_turn(turn: Turn, askable: Collection[int]) -> AskedQuestion:
    return AskedQuestion(
        **_common(turn, askable),
        asked_at=turn.asked_at,
        state=STATES_BY_REASON.get((turn.outcome or "", turn.reason), STATES[turn.outcome]),
        outcome=turn.outcome,
        reason=turn.reason,
        latency_ms=turn.latency_ms,
        repeats=turn.repeats,
    )


def _common(row: Turn | QueuedAsk, askable: Collection[int]) -> dict[str, Any]:
    text = getattr(row, TEXT)
    return {
        "chat_id": row.chat_id,
        "handle": row.agent.handle if row.agent else "",
        "is_askable": row.agent_id in askable,
        "text": text[:MAX_CHARS],
        "is_cut": len(text) > MAX_CHARS,
        "task_id": row.task_id,
    }
