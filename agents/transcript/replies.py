"""Finds what agents replied to turns, in the transcripts of their sessions.

A turn does not name its events, and no index finds them by its chat id: either would cost every ask a write
(docs/adr/0103). The ids of events grow with time, so a binary search finds the place in the table.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agents.models import Event, Turn
from agents.models.choices import Outcome
from kit import sql
from kit.search import find_first_ids

REPLY, STATUS = "reply", "task_status"
MAX_TURNS = 100
MAX_TEXT_CHARS = 2_000
# A turn and its reply are written in one transaction; concurrent transactions take ids meanwhile, so ids follow
# time only roughly.
OVERLAP = timedelta(seconds=5)
LATE_WITHIN = timedelta(seconds=60)  # a claim may last this long after the end of its turn
FOLLOWS_UP = '"followUp":true'  # in the event of a message that an agent sent after its reply
MAX_EVENTS_OF_A_TURN = 4  # the last events of a turn: notes of progress come before these
SAID_WHY = {"failed", "rejected"}  # states of `task_status` whose text says why there is no reply


@dataclass(frozen=True, slots=True)
class StoredReply:
    """The beginning of an agent's reply to a turn. `is_late`: the reply came after the turn had ended."""

    text: str
    is_late: bool


def find_replies(turns: Iterable[Turn]) -> dict[int, StoredReply]:
    """The replies to the first MAX_TURNS turns, as far as transcripts still have them, by the turns' ids.

    The text of an agent that failed is a reply too.
    """
    ended = [turn for turn in turns if turn.settled_at and turn.outcome != Outcome.DENIED][:MAX_TURNS]
    by_chat_id = {turn.chat_id: turn.pk for turn in ended}
    found: dict[int, StoredReply] = {}
    for event in Event.objects.filter(pk__in=_find_events(ended)).order_by("pk").iterator(chunk_size=10):
        payload = _read(event.payload)
        turn_id = by_chat_id.get(str(payload.get("chatId")))
        is_text = event.type == REPLY or payload.get("state") in SAID_WHY
        if turn_id is not None and is_text and (turn_id not in found or found[turn_id].is_late):
            found[turn_id] = StoredReply(str(payload.get("text", ""))[:MAX_TEXT_CHARS], bool(payload.get("late")))
    return found


def _find_events(turns: Sequence[Turn]) -> list[int]:
    """The ids of events that name the turns and may hold their replies."""
    spans = [_span(turn) for turn in turns]
    moments = {moment for span in spans for moment in span}
    ids = find_first_ids(Event.objects.all(), "ts", moments)
    of_chat = Event.objects.filter(kind=Event.Kind.CHAT, type__in=[REPLY, STATUS])
    replies = of_chat.exclude(payload__contains=FOLLOWS_UP).order_by("-pk").values_list("pk")
    named = [
        replies.filter(
            session=turn.session_id, pk__gte=ids[begin], pk__lt=ids[end], payload__contains=f'"{turn.chat_id}"'
        )[:MAX_EVENTS_OF_A_TURN]
        for turn, (begin, end) in zip(turns, spans, strict=True)
    ]
    return [pk for (pk,) in sql.rows_of_all(named)]


def _span(turn: Turn) -> tuple[datetime, datetime]:
    """The span of time in which the reply was written, if there is one."""
    settled_at = turn.settled_at or turn.asked_at
    late = timedelta(0) if turn.outcome == Outcome.COMPLETED else LATE_WITHIN
    return settled_at - OVERLAP, settled_at + OVERLAP + late


def _read(payload: str) -> dict[str, Any]:
    """The members of a stored payload; an empty dict if the payload is no JSON object."""
    try:
        members = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}
