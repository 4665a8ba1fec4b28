"""The waterfall of one ask, derived from rows that other code wrote: what happened when, for this viewer.

Nothing is written for the waterfall. Each source has a bound, and the rows of transcripts are found by a binary
search over their ids, because no index names a turn (docs/adr/0103, docs/adr/0199).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args
from urllib.parse import urlsplit

from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from a2a_bridge.models import Push, RecordedExchange
from a2a_bridge.service.ask_access import ViewedAsk, caller_id_of, may_audit, owner_id_of
from agents.core.explanations import explain
from agents.models import Agent, Event, FollowUp, PermissionRequest, Turn
from agents.models.choices import Outcome
from kit.clock import db_now
from kit.money import format_usd
from kit.search import find_first_ids
from webhooks.models import Delivery, Sendable

MAX_EVENTS = 500
MAX_OF_A_KIND = 100
MAX_LEVELS = 4  # agents that pass an ask on: `agents.core.admission` refuses more
READ_CHARS = 4_000
DETAIL_CHARS = 120
OVERLAP = timedelta(seconds=2)  # between the clocks that wrote the rows
WORKS_ON = timedelta(seconds=60)  # a claim may last this long after the end of its turn

SpanKind = Literal[
    "request", "line", "admitted", "delivery", "work", "reply", "tool", "note", "permission", "child",
    "follow_up", "end", "usage", "frame", "push", "webhook",
]  # fmt: skip
KINDS: Sequence[SpanKind] = get_args(SpanKind)
_TOOL = re.compile(r'"tool_name"\s*:\s*"([^"\\]{1,128})"')
_TOOL_ID = re.compile(r'"tool_use_id"\s*:\s*"([^"\\]{1,128})"')
_INPUT = re.compile(r'"tool_input"\s*:\s*\{\s*"[^"]{1,64}"\s*:\s*"((?:[^"\\]|\\.){1,400})')
_TEXT = re.compile(r'"(?:text|message|name)"\s*:\s*"((?:[^"\\]|\\.){1,400})')
_STATUS_NOTES = ("task_status", "task_artifact")
TITLES = {"task_status": "Status note", "task_artifact": "Artifact"}


# What other packages know of an ask: the bridge imports none of them, so the hub adds these (`hub.ask_frames`).
_sources: "list[Callable[[ViewedAsk], Iterable[Span]]]" = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One step of an ask. `ended_at`: equal to `began_at` for a moment; None: the step goes on.

    `level`: 0 for a step of the ask itself, 1 and more for asks that its agent made. `chat_id`: of a child ask
    whose page the viewer may open. `is_fault`: the step failed.
    """

    kind: SpanKind
    name: str
    began_at: datetime
    ended_at: datetime | None
    detail: str = ""
    level: int = 0
    chat_id: str = ""
    is_fault: bool = False

    @property
    def took_ms(self) -> int | None:
        """The length of the step; None for a moment, and for a step that goes on."""
        if self.ended_at is None or self.ended_at == self.began_at:
            return None
        return max((self.ended_at - self.began_at) // timedelta(milliseconds=1), 0)


def add_source(source: "Callable[[ViewedAsk], Iterable[Span]]") -> None:
    """Add a function that finds further steps of an ask, as far as its viewer may see them."""
    if source not in _sources:
        _sources.append(source)


def read_spans(viewed: ViewedAsk, exchanges: Sequence[RecordedExchange]) -> list[Span]:
    """The steps of an ask in the order of their beginnings, at most MAX_EVENTS and some."""
    turn = viewed.turn
    if viewed.is_queued:
        return [Span(kind="line", name="Waits in line for a free agent", began_at=turn.asked_at, ended_at=None)]
    spans = [*_of_exchanges(exchanges), *_of_turn(turn, is_owner=viewed.is_owner)]
    if turn.outcome != Outcome.DENIED:
        spans += _of_transcript(viewed)
        spans += _of_children(viewed)
        spans += _of_follow_ups(turn)
    if viewed.is_caller:
        spans += _of_pushes(turn)
    if viewed.is_owner:
        spans += _of_webhooks(turn)
    for source in _sources:
        spans += source(viewed)
    order = {kind: place for place, kind in enumerate(KINDS)}
    return sorted(spans, key=lambda one: (one.began_at, order[one.kind]))


def _of_exchanges(exchanges: Sequence[RecordedExchange]) -> Iterator[Span]:
    for number, one in enumerate(exchanges):
        says = f"HTTP {one.status}" if one.status else "the client left"
        yield Span(
            kind="request",
            name="Request, until the response was sent" if number == 0 else "The same message, sent again",
            began_at=one.received_at,
            ended_at=one.ended_at,
            detail=f"{one.protocol}, {says}" + (f", {one.frames} frames" if one.frames else ""),
            is_fault=one.status == 0 or one.status >= 400,
        )


def _of_turn(turn: Turn, *, is_owner: bool) -> Iterator[Span]:
    asked_at, ended_at = turn.asked_at, turn.settled_at
    why = explain(turn.outcome, turn.reason, depth=turn.depth)
    if turn.outcome == Outcome.DENIED:
        detail = why.owner if is_owner else why.caller
        yield Span(kind="end", name="Refused", began_at=asked_at, ended_at=asked_at, detail=detail, is_fault=True)
        return
    if turn.waited_ms is not None:
        began_at = asked_at - timedelta(milliseconds=turn.waited_ms)
        yield Span(kind="line", name="Waited in line", began_at=began_at, ended_at=asked_at)
    yield Span(
        kind="admitted",
        name="Admitted",
        began_at=asked_at,
        ended_at=asked_at,
        detail="counted in the day’s budget" if turn.usage_day else "",
    )
    delivered_at = _after(asked_at, turn.delivered_ms)
    if delivered_at is not None:
        yield Span(kind="delivery", name="Delivered to the agent", began_at=asked_at, ended_at=delivered_at)
    if delivered_at is not None or turn.outcome is None:
        yield Span(kind="work", name="The agent works", began_at=delivered_at or asked_at, ended_at=ended_at)
    first_at = _after(asked_at, turn.first_piece_ms)
    if first_at is not None:
        name = "The reply comes in pieces"
        yield Span(
            kind="reply", name=name, began_at=first_at, ended_at=max(ended_at, first_at) if ended_at else None
        )
    if ended_at is None:
        return
    detail = "" if turn.outcome == Outcome.COMPLETED and not turn.reason else why.owner if is_owner else why.caller
    name = f"End, stored: {why.label}"
    yield Span(kind="end", name=name, began_at=ended_at, ended_at=ended_at, detail=detail, is_fault=why.is_fault)
    if turn.input_tokens is not None or turn.output_tokens is not None or turn.cost_microusd is not None:
        says = f"{turn.input_tokens or 0:,} tokens in, {turn.output_tokens or 0:,} out"
        if is_owner and turn.cost_microusd is not None:
            says += f", {format_usd(turn.cost_microusd)}"
        yield Span(kind="usage", name="Usage reported", began_at=ended_at, ended_at=ended_at, detail=says)
    if turn.released_at is not None and turn.released_at - ended_at > OVERLAP / 2 and is_owner:
        name = "The agent was still reserved"
        yield Span(kind="work", name=name, began_at=ended_at, ended_at=turn.released_at)


def _after(start: datetime, ms: int | None) -> datetime | None:
    return None if ms is None else start + timedelta(milliseconds=ms)


def _of_transcript(viewed: ViewedAsk) -> Iterator[Span]:
    """Tool calls, notes and permission requests of the session while the turn ran.

    The caller sees the notes of the reply, and the requests that the caller may decide; the rest is the owner's.
    """
    turn = viewed.turn
    asked_at, ended_at = turn.asked_at, turn.settled_at or db_now()
    begin, end = asked_at - OVERLAP, ended_at + OVERLAP  # ids follow time only roughly
    yield from _of_requests(viewed, begin, end)
    ids = find_first_ids(Event.objects.all(), "ts", [begin, end])
    found = Event.objects.filter(session=turn.session_id, pk__gte=ids[begin], pk__lt=ids[end])
    found = found.filter(ts__gte=asked_at, ts__lte=ended_at)
    named = Q(kind=Event.Kind.CHAT, type__in=_STATUS_NOTES, payload__contains=f'"{turn.chat_id}"')
    found = found.filter(named | Q(kind=Event.Kind.TAIL) if viewed.is_owner else named).defer("payload")
    rows = list(found.annotate(beginning=Left("payload", READ_CHARS)).order_by("pk")[:MAX_EVENTS])
    ends = _tool_ends(rows)
    for event in rows:
        if event.type == "PostToolUse" and event.pk in ends.values():
            continue
        ended = next((one for one in rows if one.pk == ends.get(event.pk)), None) if event.pk in ends else None
        yield _of_event(event, ended.ts if ended else event.ts)


def _tool_ends(rows: Sequence[Event]) -> Mapping[int, int]:
    """The ids of the results of tool calls by the ids of the calls: by `tool_use_id`, else by the tool's name."""
    open_calls: dict[str, list[int]] = {}
    ends: dict[int, int] = {}
    for event in rows:
        if event.type not in ("PreToolUse", "PostToolUse"):
            continue
        text = getattr(event, "beginning")  # noqa: B009  an annotation
        found = _TOOL_ID.search(text) or _TOOL.search(text)
        name = found[1] if found else ""
        if event.type == "PreToolUse":
            open_calls.setdefault(name, []).append(event.pk)
        elif open_calls.get(name):
            ends[open_calls[name].pop(0)] = event.pk
    return ends


def _of_event(event: Event, ended_at: datetime) -> Span:
    text = getattr(event, "beginning")  # noqa: B009  an annotation
    tool = _TOOL.search(text)
    if event.type in ("PreToolUse", "PostToolUse"):
        said = _INPUT.search(text)
        name = f"Tool: {tool[1]}" if tool else "Tool"
        name += "" if event.type == "PreToolUse" else ", its result"
    else:
        said, name = _TEXT.search(text), TITLES.get(event.type, event.type)
    kind: SpanKind = "tool" if event.type in ("PreToolUse", "PostToolUse") else "note"
    detail = _plain(said[1]) if said else ""
    return Span(kind=kind, name=name, began_at=event.ts, ended_at=ended_at, detail=detail)


def _plain(escaped: str) -> str:
    """The beginning of a text of JSON, in one line."""
    text = re.sub(r"\\[nrt]", " ", escaped).replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")
    return text if len(text) <= DETAIL_CHARS else f"{text[:DETAIL_CHARS]}…"


def _of_requests(viewed: ViewedAsk, begin: datetime, end: datetime) -> Iterator[Span]:
    turn = viewed.turn
    ids = find_first_ids(PermissionRequest.objects.all(), "requested_at", [begin, end])
    rows = PermissionRequest.objects.filter(session=turn.session_id, pk__gte=ids[begin], pk__lt=ids[end])
    rows = rows.filter(Q(chat_id=turn.chat_id) | Q(chat_id="") if viewed.is_owner else Q(chat_id=turn.chat_id))
    for one in rows.select_related("resolver").order_by("pk")[:MAX_OF_A_KIND]:
        by = f" by @{one.resolver.login}" if one.resolver and (viewed.is_owner or one.chat_id) else ""
        said = f"{one.status}{by}" if one.status != PermissionRequest.Status.PENDING else "waits for a decision"
        shown = one.input_preview[:DETAIL_CHARS]
        yield Span(
            kind="permission",
            name=f"Asks leave for {one.tool[:64]}",
            began_at=one.requested_at,
            ended_at=one.resolved_at,
            detail=f"{said}: {shown}" if shown else said,
            is_fault=one.status in (PermissionRequest.Status.DENIED, PermissionRequest.Status.EXPIRED),
        )


def _of_children(viewed: ViewedAsk) -> Iterator[Span]:
    """The asks that the agent made meanwhile, and those that these agents made, in turn.

    A child is shown to its own readers, and to users who may ask its agent.
    """
    parents, level = [viewed.turn], 1
    while parents and level <= MAX_LEVELS:
        children = _find_children(parents)
        askable = _find_askable(children, viewed.user_id)
        for child in children:
            reads = caller_id_of(child) == viewed.user_id or may_audit(owner_id_of(child), viewed.user_id)
            if not (reads or child.agent_id in askable):
                continue
            why = explain(child.outcome, child.reason, depth=child.depth)
            ended_at = child.settled_at or (child.asked_at if child.outcome == Outcome.DENIED else None)
            yield Span(
                kind="child",
                name=f"Asks @{child.asked.removeprefix('@')}",
                began_at=child.asked_at,
                ended_at=ended_at,
                detail=why.label,
                level=level,
                chat_id=child.chat_id if reads else "",
                is_fault=why.is_fault,
            )
        parents, level = children, level + 1


def _find_children(parents: Sequence[Turn]) -> list[Turn]:
    """The asks from the sessions of these turns while they ran, of the same trace."""
    meant = Q()
    for one in parents:
        end = one.settled_at + WORKS_ON if one.settled_at else db_now()
        end = min(end, one.released_at) if one.released_at else end
        meant |= Q(source_session=one.session_id, pk__gt=one.pk, asked_at__gte=one.asked_at, asked_at__lte=end)
    found = Turn.objects.filter(meant, depth__gt=parents[0].depth)
    rows = list(
        found.select_related("agent__owner", "session__owner", "source_session").order_by("pk")[:MAX_OF_A_KIND]
    )
    traces = {one.trace_id for one in parents}
    return [one for one in rows if one.trace_id in traces]


def _find_askable(children: Iterable[Turn], user_id: int) -> set[int]:
    agent_ids = {one.agent_id for one in children if one.agent_id}
    return set(Agent.objects.askable_by(user_id).filter(pk__in=agent_ids).values_list("pk", flat=True))


def _of_follow_ups(turn: Turn) -> Iterator[Span]:
    for one in FollowUp.objects.filter(chat_id=turn.chat_id).order_by("pk")[:MAX_OF_A_KIND]:
        detail = "shown to a later ask" if one.shown_at else ""
        yield Span(kind="follow_up", name="Follow-up", began_at=one.sent_at, ended_at=one.sent_at, detail=detail)


def _of_pushes(turn: Turn) -> Iterator[Span]:
    """The pushes of the turn's task while the turn ran, for the caller, whose addresses they go to."""
    if not turn.task_id:
        return
    end = (turn.settled_at or db_now()) + OVERLAP
    rows = Push.objects.filter(config__task_id=turn.task_id, config__caller=turn.caller_id)
    rows = rows.filter(queued_at__gte=turn.asked_at - OVERLAP, queued_at__lte=end)
    for one in rows.select_related("config").order_by("pk")[:MAX_OF_A_KIND]:
        yield _sent(one, "push", f"Push of event {one.seq}", one.config.url)


def _of_webhooks(turn: Turn) -> Iterator[Span]:
    """The deliveries to the owner about the ask, queued as it was admitted and as it ended."""
    rows: QuerySet[Delivery] = Delivery.objects.filter(subscription__owner=owner_id_of(turn))
    rows = rows.filter(payload__contains=f'"{turn.chat_id}"').select_related("subscription")
    for moment in filter(None, (turn.asked_at, turn.settled_at)):
        near = rows.filter(queued_at__gte=moment - OVERLAP, queued_at__lte=moment + OVERLAP)
        wanted = {"agent.replied"} if moment == turn.settled_at else {"agent.dispatched", "agent.denied"}
        for one in near.filter(type__in=wanted).order_by("pk")[:MAX_OF_A_KIND]:
            yield _sent(one, "webhook", f"Webhook {one.type}", one.subscription.url)


def _sent(row: Push | Delivery, kind: SpanKind, name: str, url: str) -> Span:
    """The delivery of a row of an outbox. Of its address only the host is shown: paths may be secret."""
    status = f", HTTP {row.last_status}" if row.last_status else f", {row.last_error}" if row.last_error else ""
    tries = f"{row.attempts} attempt{'' if row.attempts == 1 else 's'}"
    is_waiting = row.status in Sendable.UNSETTLED
    return Span(
        kind=kind,
        name=name,
        began_at=row.queued_at,
        ended_at=row.delivered_at or (None if is_waiting else row.queued_at),
        detail=f"{row.status} to {urlsplit(url).hostname}, {tries}{status}",
        is_fault=row.status == Sendable.Status.FAILED,
    )
