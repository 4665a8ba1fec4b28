"""Work of the bridge that must be done whatever process lives. Every job may run twice, late, or at once."""

from threading import Event

from a2a_bridge.service import follow_ups, push_delivery, repeats
from a2a_bridge.service.push_delivery import PushOutbox
from a2a_bridge.service.tasks import journal
from kit.jobs import job
from kit.outbox import Sender
from webhooks.service.sending import client


@job("a2a.forget_keys")
def forget_keys() -> int:
    """Delete the rows of sends with an Idempotency-Key, and of follow-ups, after 24 h; how many."""
    return repeats.forget_old() + follow_ups.forget_old()


@job("a2a.forget_tasks")
def forget_tasks(tasks_kept_days: int) -> int:
    """Delete tasks of the journal whose state was set longer ago than that; how many went."""
    return journal.forget_old(tasks_kept_days)


@job("a2a.trim_tasks")
def trim_tasks() -> int:
    """Delete the oldest finished tasks of callers who have too many in the journal; how many went."""
    return journal.trim()


@job("a2a.push_due")
def push_due(stopping: Event | None = None) -> int:
    """Queue the task ends that no process sent, then send what is due; returns the number of ends and attempts."""
    return push_delivery.queue_missed_ends() + Sender(PushOutbox(client()), stopping).run()


@job("a2a.forget_pushes")
def forget_pushes() -> int:
    """Delete the push addresses of tasks that are gone; how many."""
    return push_delivery.forget_configs()
