"""The pause of all sending: while it holds, deliveries, pushes and mails wait in their outboxes."""

from django.db.models import Exists

from kit.clock import db_now
from webhooks.models import SendingPause

MAX_REASON_CHARS = 200
NOT_PAUSED = ~Exists(SendingPause.objects.all())  # a condition for any query


def pause_sending(reason: str = "") -> tuple[SendingPause, bool]:
    """Send nothing from now on, in any process; attempts that have begun end. The pause, and whether it is new."""
    made: tuple[SendingPause, bool] = SendingPause.objects.get_or_create(
        pk=SendingPause.ONLY, defaults={"paused_at": db_now(), "reason": reason[:MAX_REASON_CHARS]}
    )
    return made


def resume_sending() -> bool:
    """Send again, beginning with what waited; False when sending was not paused."""
    return bool(SendingPause.objects.filter(pk=SendingPause.ONLY).delete()[0])


def find_pause() -> SendingPause | None:
    """The pause, while there is one."""
    return SendingPause.objects.filter(pk=SendingPause.ONLY).first()
