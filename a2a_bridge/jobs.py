"""Work of the bridge that must be done whatever process lives. Every job may run twice, late, or at once."""

from celery import shared_task

from a2a_bridge import repeats
from a2a_bridge.pushes import missed_ends
from a2a_bridge.pushes.queue import PUSHES
from a2a_bridge.tasks import journal
from webhooks.sending import Sender, client


@shared_task(name="a2a.forget_keys", ignore_result=True)
def forget_keys() -> int:
    """Delete what is kept of sends with an Idempotency-Key, 24 h after; how many went."""
    return repeats.forget_old()


@shared_task(name="a2a.forget_tasks", ignore_result=True)
def forget_tasks(tasks_kept_days: int) -> int:
    """Delete tasks of the journal whose state was set longer ago than that; how many went."""
    return journal.forget_old(tasks_kept_days)


@shared_task(name="a2a.trim_tasks", ignore_result=True)
def trim_tasks() -> int:
    """Delete the oldest finished tasks of callers who have too many in the journal; how many went."""
    return journal.trim()


@shared_task(name="a2a.push_due", ignore_result=True)
def push_due() -> int:
    """Queue the task ends that no process sent, then send what is due; returns the number of attempts."""
    missed_ends.sweep()
    return Sender(client(), queue=PUSHES).run()


@shared_task(name="a2a.forget_pushes", ignore_result=True)
def forget_pushes() -> int:
    """Delete the push addresses of tasks that are gone; how many."""
    return missed_ends.forget()
