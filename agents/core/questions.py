"""How long the text of a question is kept: as long as the owner of who was asked wants. The audit row stays."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from accounts.models import User
from agents.models import Agent, Session, Turn
from kit import batches
from kit.clock import db_now
from kit.sql import advisory_lock

BLANK_AT_ONCE = 500
OWNERS_AT_ONCE = 100
EVERY = timedelta(hours=6)
STILL_OPEN = timedelta(days=1)  # what was asked that long before may have been open at the last look


def blank_old(default_days: int) -> int:
    """Blank the questions that their owners keep no longer, in batches; how many.

    Each owner is looked at every few hours, from where the last look ended.
    """
    with advisory_lock("blanking questions") as is_alone:
        return _blank_all(default_days) if is_alone else 0


def _blank_all(default_days: int) -> int:
    now, blanked = db_now(), 0
    for days in list(User.objects.values_list("questions_kept_days", flat=True).distinct()):
        until = now - timedelta(days=days or default_days)
        stale = User.objects.filter(questions_kept_days=days).filter(
            Q(questions_blanked_to=None) | Q(questions_blanked_to__lt=until - EVERY)
        )
        blanked += sum(_blank_of(owner, until) for owners in _some(stale) for owner in owners)
    return blanked


def _some(owners: QuerySet[User]) -> Iterator[list[User]]:
    found: Iterator[list[User]] = batches.resting(lambda: list(owners.order_by("pk")[:OWNERS_AT_ONCE]))
    return found


def _blank_of(owner: User, until: datetime) -> int:
    since = owner.questions_blanked_to
    asked = Turn.objects.exclude(outcome=None).exclude(question="").filter(asked_at__lt=until)
    if since is not None:
        asked = asked.filter(asked_at__gte=since - STILL_OPEN)
    own_agents = Agent.objects.filter(owner=owner).values("pk")
    own_sessions = Session.objects.filter(owner=owner).values("pk")
    blanked = _blank(asked.filter(agent__in=own_agents))
    blanked += _blank(asked.filter(agent=None, session__in=own_sessions))
    User.objects.filter(pk=owner.pk, questions_kept_days=owner.questions_kept_days).update(
        questions_blanked_to=until
    )
    return blanked


def _blank(turns: QuerySet[Turn]) -> int:
    return sum(Turn.objects.filter(pk__in=ids).update(question="") for ids in batches.of(turns, BLANK_AT_ONCE))
