"""Starts and stops runs of sets of questions, by hand, on schedule and for new cards; and deletes old ones.

A run is started by inserting a result for each question; `asking` asks what is due.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from evaluations import limits
from evaluations.models import EvaluationResult, EvaluationRun, QuestionSet
from evaluations.service.completion import end_complete
from evaluations.service.sets import EVERY, read_card_version
from kit import batches
from kit.clock import db_now

Cause = EvaluationRun.Cause
State = EvaluationResult.State
SETS_AT_ONCE = 200
STOPPED = "the run was stopped"

_on_started: list[Callable[[], None]] = []


class CannotRun(Exception):
    """The set cannot be run now; the text says why."""


def on_started(waker: Callable[[], None]) -> None:
    """Call this function after the commit of each run that this process starts."""
    _on_started[:] = [waker]


@transaction.atomic
def start_run(question_set: QuestionSet, cause: EvaluationRun.Cause) -> EvaluationRun:
    """Have each question of a set asked once.

    Raises:
        CannotRun: the set has an open run, no question, or an agent that is not published.
    """
    locked = QuestionSet.objects.kept().select_for_update(of=("self",), no_key=True)
    found = locked.select_related("agent").filter(pk=question_set.pk).first()
    if found is None:
        raise CannotRun("the set was deleted")
    if found.agent.status != found.agent.Status.PUBLISHED:
        raise CannotRun("the agent is not published: publish it first")
    if EvaluationRun.objects.filter(question_set=found, ended_at=None).exists():
        raise CannotRun("the set is being run: wait for the end, or stop it")
    questions = list(found.questions.order_by("position", "pk"))
    if not questions:
        raise CannotRun("the set has no question: add one first")
    now, version = db_now(), read_card_version(found.agent)
    run = EvaluationRun.objects.create(
        question_set=found,
        cause=cause,
        card_digest=version.digest,
        card_version=version.name,
        started_at=now,
    )
    # In the order of the questions, because the rows that are due longest are asked first.
    EvaluationResult.objects.bulk_create(
        [
            EvaluationResult(run=run, question=one, next_attempt_at=now + timedelta(microseconds=number))
            for number, one in enumerate(questions)
        ]
    )
    QuestionSet.objects.filter(pk=found.pk).update(card_digest=version.digest)
    for waker in _on_started:
        transaction.on_commit(waker)
    return run


@transaction.atomic
def stop_run(run: EvaluationRun) -> bool:
    """Ask no further question of a run; returns False if the run had ended. An ask that was sent goes on."""
    open_run = EvaluationRun.objects.select_for_update(no_key=True).filter(pk=run.pk, ended_at=None)
    if not open_run.exists():
        return False
    now = db_now()
    EvaluationResult.objects.filter(run=run, state=State.WAITING).update(
        state=State.LEFT_OUT, next_attempt_at=None, ended_at=now, detail=STOPPED
    )
    return bool(EvaluationRun.objects.filter(pk=run.pk).update(ended_at=now, is_stopped=True))


def start_due() -> int:
    """Start the runs that schedules and new cards demand; returns their number. Two jobs at once start one run.

    Open runs that wait for nothing end first: a set with an open run is not started.
    """
    end_complete()
    return _start_scheduled() + _start_for_new_cards()


def _start_scheduled() -> int:
    """Start the sets that are due. A set that cannot be run now is due again after its interval."""
    now, started = db_now(), 0
    due = QuestionSet.objects.kept().filter(due_at__lte=now, agent__owner__is_active=True).select_related("agent")
    for one in due.order_by("due_at")[:SETS_AT_ONCE]:
        mine = QuestionSet.objects.filter(pk=one.pk, due_at=one.due_at)
        if mine.update(due_at=_following(one, now)):
            started += _try_to_start(one, Cause.SCHEDULE)
    return started


def _following(one: QuestionSet, now: datetime) -> datetime | None:
    """The next time of a schedule after now; times that were missed are left out."""
    if one.due_at is None or one.schedule not in EVERY:
        return None
    every = EVERY[one.schedule]
    return one.due_at + every * ((now - one.due_at) // every + 1)


def _start_for_new_cards() -> int:
    """Start the sets whose agent has another card than when a run last began.

    A set that is being run keeps its digest, so that it is started once that run has ended.
    """
    started, last = 0, 0
    marked = QuestionSet.objects.kept().filter(runs_on_new_card=True, agent__owner__is_active=True)
    published = marked.filter(agent__status="published")
    while some := list(published.filter(pk__gt=last).select_related("agent").order_by("pk")[:SETS_AT_ONCE]):
        for one in some:
            if read_card_version(one.agent).digest != one.card_digest:
                started += _try_to_start(one, Cause.CARD)
        last = some[-1].pk
    return started


def _try_to_start(one: QuestionSet, cause: EvaluationRun.Cause) -> int:
    try:
        start_run(one, cause)
    except CannotRun:
        return 0
    return 1


def spend(set_id: int, asks: int) -> bool:
    """Count asks in the budget of a set for this UTC day; returns False, and counts none, if they exceed it."""
    today = db_now().date()
    found = QuestionSet.objects.filter(pk=set_id)
    found.filter(~Q(spent_on=today) | Q(spent_on=None)).update(spent_on=today, asks_spent=0)
    within = found.filter(spent_on=today, asks_spent__lte=F("daily_budget") - asks)
    return bool(within.update(asks_spent=F("asks_spent") + asks))


def give_back(set_id: int, asks: int) -> None:
    """Take asks that reached no agent out of the budget again."""
    if asks:
        counted = QuestionSet.objects.filter(pk=set_id, spent_on=db_now().date(), asks_spent__gte=asks)
        counted.update(asks_spent=F("asks_spent") - asks)


def forget_old(kept_days: int) -> int:
    """Delete runs that started longer ago, and the oldest of sets with too many; returns their number."""
    before = db_now() - timedelta(days=kept_days)
    deleted = batches.delete(EvaluationRun.objects.exclude(ended_at=None).filter(started_at__lt=before))
    for set_id in QuestionSet.objects.order_by("pk").values_list("pk", flat=True).iterator():
        deleted += batches.delete(_beyond_limit(set_id))
    return deleted


def _beyond_limit(set_id: int) -> QuerySet[EvaluationRun]:
    of_set = EvaluationRun.objects.filter(question_set=set_id).order_by("-started_at", "-pk")
    oldest = of_set.values_list("started_at", flat=True)[limits.RUNS.most : limits.RUNS.most + 1].first()
    if oldest is None:
        return EvaluationRun.objects.none()
    return EvaluationRun.objects.filter(question_set=set_id, started_at__lte=oldest).exclude(ended_at=None)


def asks_today(question_set: QuestionSet) -> int:
    """The asks of a set on this UTC day."""
    return question_set.asks_spent if question_set.spent_on == db_now().date() else 0
