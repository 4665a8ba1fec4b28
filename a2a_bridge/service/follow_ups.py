"""Follow-ups: replies that an agent sends after the reply that ended its turn (docs/adr/0174).

Each follow-up is a row, kept for a day, and a new task in the context of its turn.
"""

import asyncio
import json
import logging
from collections.abc import Collection, Sequence
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import QuerySet
from msgspec.structs import replace

from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.tasks.pieces import events_of_plain, plain_end
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.task import Artifact, State, Task, timestamp
from agents.core.errors import NoSuchTurn, TooManyFollowUps, Unavailable
from agents.core.ledger.state import text_type_of
from agents.core.types import SettledTurn
from agents.models import Agent, Event, FollowUp, Turn
from agents.models.choices import Outcome
from agents.transcript.pieces import MAX_REPLY_BYTES, Json, Part
from kit import batches
from kit.async_db import db_call
from kit.clock import db_now
from kit.ids import unguessable

logger = logging.getLogger(__name__)

PREFIX = "queued-reply-"
NAME = "Queued follow-up reply"
MAX_OF_TURN = 20
KEPT = timedelta(hours=24)
LATEST_EVENTS = 200
LOOKS, LOOK_EVERY_S = 20, 0.1


class FollowUpTasks:
    """Makes a completed task of each follow-up, and sends it to the push addresses of the task that it follows."""

    def __init__(self, tasks: StoresById, pushes: Pushes) -> None:
        self._tasks = tasks
        self._pushes = pushes

    async def take(self, session_id: int, chat_id: str, text: str, *, only_of: int | None) -> None:
        """Keep a follow-up (`agents.core.ports.FollowUpTaker`).

        If the store is out of reach, the next task shows the follow-up.
        """
        kept = await self._kept(session_id, chat_id, text, only_of)
        if kept.agent is None or not kept.task_id:
            return
        try:
            await self._add_task(kept, kept.agent)
        except Unavailable:
            logger.warning("follow_up.no_task", extra={"chat_id": chat_id})

    async def _kept(self, session_id: int, chat_id: str, text: str, only_of: int | None) -> FollowUp:
        """Keep a follow-up once its turn has ended: the ledger may not have stored the end yet."""
        for _ in range(LOOKS):
            kept = await db_call(keep)(session_id, chat_id, text, only_of=only_of)
            if kept is not None:
                return kept
            await asyncio.sleep(LOOK_EVERY_S)
        raise NoSuchTurn

    async def _add_task(self, kept: FollowUp, agent: Agent) -> None:
        followed = await self._tasks.of(kept.followed_id).find(kept.followed_id, caller_id=kept.caller_id)
        at = timestamp()
        began = Task(
            id=kept.task_id,
            caller_id=kept.caller_id,
            handle=agent.handle,
            context_id=kept.context_id,
            chat_id=kept.chat_id,
            home="",
            state=State.SUBMITTED,
            updated_at=at,
            history=(),
            metadata=_metadata(kept.followed_id if followed else ""),
            text_type=_text_type(agent),
        )
        task = plain_end(began, SettledTurn(Outcome.COMPLETED, "", kept.text), at)
        await self._tasks.of(task.id).put(task)
        await self._pushes.queue_follow_up(kept.followed_id, task, events_of_plain(task))


def add_follow_ups(task: Task, found: Sequence[FollowUp]) -> Task:
    """The task with follow-ups as artifacts, after its own."""
    return replace(task, artifacts=(*task.artifacts, *map(_artifact, found)))


async def load_with_follow_ups(task: Task) -> Task:
    """An ended task with its follow-ups as artifacts, as 0.3 shows them."""
    found = await db_call(find_of_turn)(task.chat_id)
    return add_follow_ups(task, [one for one in found if one.task_id and one.followed_id == task.id])


def _artifact(follow_up: FollowUp) -> Artifact:
    number = follow_up.task_id.rpartition("-")[2]
    text = Part(text=follow_up.text, media_type=_text_type(follow_up.agent))
    return Artifact(f"{PREFIX}{number}", (text,), NAME, metadata=_metadata(follow_up.followed_id))


def _text_type(agent: Agent | None) -> str:
    """The media type of an agent's texts, see `agents.core.types.AskTarget`."""
    return text_type_of(json.dumps(agent.output_modes)) if agent else ""


def _metadata(followed_id: str) -> Json:
    return {"source": "queued-reply", **({"followsTaskId": followed_id} if followed_id else {})}


def keep(session_id: int, chat_id: str, text: str, *, only_of: int | None) -> FollowUp | None:
    """Keep a follow-up of a turn that this session answered. None: the turn is still open.

    The id of its task names the task store of the turn's task. `only_of`: as in `agents.core.ports.FollowUpTaker`.

    Raises:
        NoSuchTurn: there is none, or the text repeats its reply or a follow-up.
        TooManyFollowUps: nothing was written.
    """
    asked = Turn.objects.filter(chat_id=chat_id, session_id=session_id)
    # Without a lock first: agents may send any chat id.
    ends = list(asked.values_list("settled_at", flat=True))
    if not ends:
        raise NoSuchTurn
    return _keep(asked, text, only_of) if ends[0] is not None else None


@transaction.atomic
def _keep(asked: QuerySet[Turn], text: str, only_of: int | None) -> FollowUp:
    now = db_now()
    turn = asked.select_for_update(of=("self",)).select_related("agent", "caller").first()
    if turn is None or turn.caller is None or (only_of is not None and turn.caller_id != only_of):
        raise NoSuchTurn
    if turn.outcome != Outcome.COMPLETED or turn.reason or turn.settled_at is None or turn.settled_at < now - KEPT:
        raise NoSuchTurn
    before = list(FollowUp.objects.filter(chat_id=turn.chat_id).values_list("text", flat=True))
    if text.strip() in [one.strip() for one in before] or _is_its_reply(turn, text):
        raise NoSuchTurn
    if len(before) >= MAX_OF_TURN or sum(len(one.encode()) for one in [*before, text]) > MAX_REPLY_BYTES:
        raise TooManyFollowUps(f"a turn has at most {MAX_OF_TURN} follow-ups, of {MAX_REPLY_BYTES} bytes in all")
    prefix = turn.task_id[: turn.task_id.rfind("-") + 1]
    task_id = unguessable(prefix) if prefix and turn.agent else ""
    return FollowUp.objects.create(
        chat_id=turn.chat_id,
        agent=turn.agent,
        caller=turn.caller,
        context_id=turn.context_id,
        followed_id=turn.task_id,
        task_id=task_id,
        text=text,
        sent_at=now,
        shown_at=None if task_id else now,  # no ask is given one that has no task
    )


def find_unshown(agent_id: int, caller_id: int, context_id: str) -> list[FollowUp]:
    """The follow-ups for a caller in a context that no ask was given yet, the oldest first.

    The follow-ups together have at most the bytes of a reply; the ask after the next one gets the others.
    """
    of_context = FollowUp.objects.filter(agent=agent_id, shown_at=None, caller=caller_id, context_id=context_id)
    found: list[FollowUp] = []
    size = 0
    oldest = of_context.select_related("agent").order_by("pk")[:MAX_OF_TURN]
    for one in oldest.iterator(chunk_size=1):
        size += len(one.text.encode())
        if found and size > MAX_REPLY_BYTES:
            break
        found.append(one)
    return found


async def mark_shown(follow_ups: Collection[FollowUp], chat_id: str) -> None:
    """Record that the ask of a turn was given these follow-ups; after a failure the next ask gets them again."""

    def mark() -> None:
        shown = FollowUp.objects.filter(pk__in=[one.pk for one in follow_ups], shown_at=None)
        shown.update(shown_at=db_now())

    try:
        await db_call(mark)()
    except (DatabaseError, InterfaceError):
        logger.exception("follow_ups.not_marked", extra={"chat_id": chat_id})


def find_of_turn(chat_id: str) -> list[FollowUp]:
    """The follow-ups of a turn, the oldest first."""
    return list(FollowUp.objects.filter(chat_id=chat_id).select_related("agent").order_by("pk"))


def forget_old() -> int:
    """Delete the follow-ups that are older than a day; returns their number."""
    return batches.delete(FollowUp.objects.filter(sent_at__lt=db_now() - KEPT))


def _is_its_reply(turn: Turn, text: str) -> bool:
    """True if this text was the reply of a turn, by the latest events of its session."""
    latest = Event.objects.filter(session=turn.session_id, kind=Event.Kind.CHAT).order_by("-pk")
    ids = [*latest.values_list("pk", flat=True)[:LATEST_EVENTS]]
    replies = Event.objects.filter(pk__in=ids, type="reply", payload__contains=f'"{turn.chat_id}"')
    said = [json.loads(payload) for payload in replies.values_list("payload", flat=True)]
    return any(str(one.get("text", "")).strip() == text.strip() for one in said)
