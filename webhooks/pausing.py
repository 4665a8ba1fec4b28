"""Stops and starts the sending of webhook deliveries and pushes, for a restored copy of a hub (docs/adr/0099)."""

from kit.clock import db_now
from webhooks.models import SendingPause

MAX_REASON_CHARS = 200


def pause_sending(reason: str = "") -> tuple[SendingPause, bool]:
    """Send nothing from now on, in any process; attempts that have begun end. The pause, and whether it is new."""
    made: tuple[SendingPause, bool] = SendingPause.objects.get_or_create(
        pk=SendingPause.ONLY, defaults={"paused_at": db_now(), "reason": reason[:MAX_REASON_CHARS]}
    )
    return made


def resume_sending() -> bool:
    """Send again, what waited first; False when sending was not paused."""
    return bool(SendingPause.objects.filter(pk=SendingPause.ONLY).delete()[0])


def find_pause() -> SendingPause | None:
    """The pause, while there is one."""
    return SendingPause.objects.filter(pk=SendingPause.ONLY).first()
