"""The jobs of `agents`: the reaper and retention. Every job may run late, or twice."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from accounts.models import ClientGrant, Credential, User, delete_expired
from agents.core import presence
from agents.core.alerts import watch_agents
from agents.core.failure_groups import group_failures as group_new_failures
from agents.core.mail import MailOutbox, forget_old_mails
from agents.core.ranking import rank_agents
from agents.links.remote.publishing import name_links_of_old_sessions
from agents.models import (
    Agent,
    Alert,
    Connection,
    Event,
    FailureGroup,
    ProblemNote,
    Process,
    QueuedAsk,
    Rating,
    RemoteName,
    Session,
    TokenUsage,
    Turn,
)
from agents.models.choices import NO_CONNECTION, Outcome, Surface, TurnFailure
from agents.models.session import alive_since
from agents.transcript import files
from kit import batches, sql
from kit.clock import db_now
from kit.jobs import job
from kit.outbox import Sender
from kit.sql import advisory_lock

CREDENTIALS_KEPT = timedelta(days=90)
REAPED_AT_ONCE = 1000
BLANKED_AT_ONCE = 500
OWNERS_AT_ONCE = 100
BLANKED_EVERY = timedelta(hours=6)
STILL_OPEN = timedelta(days=1)  # questions that were open at the last run are younger
QUEUED_KEPT = timedelta(seconds=60)  # a live process deletes its own positions long before


@job("agents.reap")
def reap() -> dict[str, int]:
    """End turns of dead processes, release expired claims, and delete dead processes; returns the counts."""
    sql.end_stopped_transactions()  # first, because dead processes may hold locks on the rows below
    with transaction.atomic():
        now = db_now()
        alive = alive_since(now)
        # Before the turns, because this locks sessions.
        dead = presence.remove_processes(Process.objects.filter(beat_at__lte=alive))
        living = Process.objects.filter(beat_at__gt=alive).values("pk")
        ended = {"outcome": Outcome.FAILED, "settled_at": now, "released_at": now}
        orphans = Turn.objects.open().exclude(home__in=living).update(reason=TurnFailure.PROCESS_DIED, **ended)
        overdue = Turn.objects.open().filter(claim_until__lt=now).update(reason=TurnFailure.TIMEOUT, **ended)
        lingering = Turn.objects.holding().exclude(outcome=None)
        gone = lingering.exclude(connection_id=NO_CONNECTION).exclude(
            connection_id__in=Connection.objects.values("pk")
        )
        released = lingering.filter(claim_until__lt=now).update(released_at=F("claim_until"))
        released += gone.update(released_at=now)
        _end_waiting(QueuedAsk.objects.exclude(home__in=living), now)
        _take(QueuedAsk.objects.filter(waits_until__lt=now - QUEUED_KEPT))
    return {"orphans": orphans, "overdue": overdue, "released": released, "dead": dead}


def _end_waiting(lost: QuerySet[QueuedAsk], now: datetime) -> None:
    """Turn the asks that waited in dead processes into failed turns, so that their callers get an answer."""
    ended = {"outcome": Outcome.FAILED, "reason": TurnFailure.PROCESS_DIED, "settled_at": now, "released_at": now}
    turns = [
        Turn(
            chat_id=ask.chat_id,
            agent_id=ask.agent_id,
            session_id=ask.session_id,
            caller_id=ask.caller_id,
            surface=Surface.A2A,
            question=ask.question,
            asked_at=ask.queued_at,
            task_id=ask.task_id,
            **ended,
        )
        for ask in _take(lost)
    ]
    Turn.objects.bulk_create(turns, ignore_conflicts=True)


def _take(places: QuerySet[QueuedAsk]) -> list[QueuedAsk]:
    """Delete positions, except those that a ledger has locked; returns the deleted ones.

    Positions are locked before turns, as in the ledger.
    """
    taken = list(places.select_for_update(skip_locked=True)[:REAPED_AT_ONCE])
    QueuedAsk.objects.filter(pk__in=[one.pk for one in taken]).delete()
    return taken


@job("agents.retain")
def retain(turns_kept_days: int) -> int:
    """Delete older turns, and credentials that ended long ago; returns the number of deleted turns."""
    now = db_now()
    delete_expired()
    name_links_of_old_sessions()
    forget_old_mails()
    before = now - timedelta(days=turns_kept_days)
    batches.delete(RemoteName.objects.filter(used_at__lt=before))
    batches.delete(Credential.objects.spent_before(now - CREDENTIALS_KEPT).filter(connections=None))
    batches.delete(ClientGrant.objects.spent_before(now - CREDENTIALS_KEPT))
    deleted = _delete_oldest(Turn.objects.exclude(outcome=None), "asked_at", before)
    batches.delete(
        FailureGroup.objects.filter(last_at__lt=before)
    )  # after their turns, which would be grouped again
    for rows in (ProblemNote.objects, Rating.objects):
        batches.delete(rows.filter(~Exists(Turn.objects.filter(pk=OuterRef("turn_id")))))
    return deleted


@job("agents.blank_questions")
def blank_questions(questions_kept_days: int) -> int:
    """Blank the text of questions after the time that the agent's owner chose; returns their number. Rows stay.

    `questions_kept_days`: for owners who chose no number. The job processes each owner every few hours, from where
    the last run ended.
    """
    with advisory_lock("blanking questions") as is_alone:
        return _blank_all(questions_kept_days) if is_alone else 0


@job("agents.forget_events")
def forget_events(events_kept_days: int) -> int:
    """Delete older events, rows of token usage and ended alerts; returns the number of deleted rows."""
    before = db_now() - timedelta(days=events_kept_days)
    events = _delete_oldest(Event.objects.all(), "ts", before)
    batches.delete(Alert.objects.filter(ended_at__lt=before))
    return events + _delete_oldest(TokenUsage.objects.all(), "written_at", before)


@job("agents.watch")
def watch() -> int:
    """Raise and end the alerts of owners; returns their number."""
    return watch_agents()


@job("agents.group_failures")
def group_failures() -> int:
    """Count failed and refused asks into groups; returns the number of asks."""
    return group_new_failures()


@job("agents.rank")
def rank() -> int:
    """Count the figures by which the directory sorts agents; returns the number of agents."""
    return rank_agents()


@job("agents.send_mails")
def send_mails() -> int:
    """Send the mails that are due; returns the number of attempts."""
    return Sender(MailOutbox()).run()


@job("agents.expire_files")
def expire_files() -> int:
    """Delete expired files, and stored bytes that no file names; returns the number of files."""
    return files.expire()


def _delete_oldest(rows: QuerySet[Any], moment: str, before: datetime) -> int:
    """Delete rows older than a moment, oldest first and in batches; returns their number. Ids grow with time."""

    def find() -> list[Any]:
        oldest = rows.order_by("pk").values_list("pk", moment)[: batches.AT_ONCE]
        return [pk for pk, then in oldest if then < before]

    manager = rows.model._default_manager
    return sum(manager.filter(pk__in=ids).delete()[0] for ids in batches.run_with_pauses(find))


def _blank_all(default_days: int) -> int:
    now, blanked = db_now(), 0
    for days in list(User.objects.values_list("questions_kept_days", flat=True).distinct()):
        until = now - timedelta(days=days or default_days)
        stale = User.objects.filter(questions_kept_days=days).filter(
            Q(questions_blanked_to=None) | Q(questions_blanked_to__lt=until - BLANKED_EVERY)
        )
        for some in batches.run_with_pauses(partial(_load_first_owners, stale)):
            blanked += sum(_blank_questions_of(owner, until) for owner in some)
    return blanked


def _load_first_owners(owners: QuerySet[User]) -> list[User]:
    return list(owners.order_by("pk")[:OWNERS_AT_ONCE])


def _blank_questions_of(owner: User, until: datetime) -> int:
    since, blanked = owner.questions_blanked_to, 0
    asked = Turn.objects.exclude(outcome=None).exclude(question="", failure_text=None).filter(asked_at__lt=until)
    if since is not None:
        asked = asked.filter(asked_at__gte=since - STILL_OPEN)
    own_agents = Agent.objects.filter(owner=owner).values("pk")
    own_sessions = Session.objects.filter(owner=owner).values("pk")
    for turns in (asked.filter(agent__in=own_agents), asked.filter(agent=None, session__in=own_sessions)):
        for ids in batches.key_batches(turns, BLANKED_AT_ONCE):
            blanked += Turn.objects.filter(pk__in=ids).update(question="", failure_text=None)
    User.objects.filter(pk=owner.pk, questions_kept_days=owner.questions_kept_days).update(
        questions_blanked_to=until
    )
    return blanked
