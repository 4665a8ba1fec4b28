"""Ratings of answers: a thumb up or down of the caller for each answer, and their rate over time for the owner."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate

from agents.core.figures import DayWindow
from agents.models import Agent, Rating, Turn
from agents.models.choices import Outcome
from kit.clock import db_now, iso
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent
from webhooks.wire import RATED

UP: Final = "up"
DOWN: Final = "down"
MAX_ID_CHARS = 64
Thumb = Literal["up", "down"]


class NoSuchAnswer(Exception):
    """The user has no such answer to rate: it is another caller's, the ask was not answered, or there was none."""

    def __init__(self) -> None:
        super().__init__("no such answer of yours")


class RatingSums(NamedTuple):
    """The numbers of thumbs up and of all thumbs."""

    good: int
    all: int

    @property
    def bad(self) -> int:
        """The number of thumbs down."""
        return self.all - self.good

    @property
    def percent(self) -> int | None:
        """The share of thumbs up, rounded; None without thumbs."""
        return round(100 * self.good / self.all) if self.all else None


def word_of(rating: Rating | None) -> Thumb | None:
    """`up` or `down`; None without a rating."""
    if rating is None:
        return None
    return UP if rating.is_good else DOWN


def get_answer(answer_id: str, caller_id: int) -> Turn:
    """The answered turn of a caller at an agent, by its chat id or the id of its task, with agent and rating.

    Raises:
        NoSuchAnswer
    """
    if not 0 < len(answer_id) <= MAX_ID_CHARS or not answer_id.isprintable():
        raise NoSuchAnswer
    own = Turn.objects.asked_by(caller_id).filter(outcome=Outcome.COMPLETED)
    own = own.select_related("agent", "caller", "session", "rating")
    turn = own.filter(chat_id=answer_id).first() or own.last_of_task(answer_id, caller_id)
    if turn is None:
        raise NoSuchAnswer
    return turn


@transaction.atomic
def rate(chat_id: str, caller_id: int, *, is_good: bool, note: str) -> Rating:
    """Give an answer a thumb, or change the thumb and its note; an equal rating changes nothing.

    Raises:
        NoSuchAnswer
    """
    turn = get_answer(chat_id, caller_id)
    now = db_now()
    values: dict[str, Any] = {"agent": turn.agent, "caller": turn.caller, "is_good": is_good, "note": note}
    rating, is_new = Rating.objects.select_for_update(of=("self",)).get_or_create(
        turn=turn, defaults=values | {"rated_at": now}
    )
    if not is_new:
        if (rating.is_good, rating.note) == (is_good, note):
            return rating
        rating.is_good, rating.note, rating.rated_at = is_good, note, now
        rating.save(update_fields=["is_good", "note", "rated_at"])
    outbox.record([_rated(turn, rating)])
    return rating


def remove_rating(chat_id: str, caller_id: int) -> None:
    """Take the thumb of an answer away, if there is one.

    Raises:
        NoSuchAnswer
    """
    Rating.objects.filter(turn=get_answer(chat_id, caller_id)).delete()


def find_ratings(chat_ids: Iterable[str], caller_id: int) -> Mapping[str, Rating]:
    """The ratings of a caller's answers, by chat id."""
    found = Rating.objects.filter(caller=caller_id, turn__chat_id__in=[*chat_ids]).select_related("turn")
    return {one.turn.chat_id: one for one in found}


def ratings_of(agent: Agent) -> QuerySet[Rating]:
    """The ratings of an agent, the newest first."""
    return Rating.objects.filter(agent=agent).select_related("turn", "caller").order_by("-rated_at", "-pk")


def sums_by_day(agent: Agent, window: DayWindow) -> Mapping[date, RatingSums]:
    """The thumbs of each day of a window, by the day on which they were given or last changed."""
    given = Rating.objects.filter(agent=agent, rated_at__gte=window.since)
    day = TruncDate("rated_at", tzinfo=ZoneInfo(window.zone))
    counted = given.values(day=day).annotate(good=Count("pk", filter=Q(is_good=True)), all=Count("pk"))
    return {row["day"]: RatingSums(row["good"], row["all"]) for row in counted.order_by()}


def all_sums(agent: Agent) -> RatingSums:
    """The thumbs of all times."""
    sums = Rating.objects.filter(agent=agent).aggregate(good=Count("pk", filter=Q(is_good=True)), all=Count("pk"))
    return RatingSums(sums["good"], sums["all"])


def _rated(turn: Turn, rating: Rating) -> OutboxEvent:
    return OutboxEvent(
        type=RATED,
        audience=(turn.session.owner_id,),
        session_id=str(turn.session.public_id),
        routing_name=f"@{turn.session.routing_name}",
        payload={
            "handle": turn.asked,
            "agentId": turn.agent_id,
            "askerLogin": turn.asker,
            "routeId": turn.chat_id,
            "question": turn.question,
            "rating": word_of(rating),
            "note": rating.note,
            "ratedAt": iso(rating.rated_at),
        },
        traceparent=turn.traceparent,
    )
