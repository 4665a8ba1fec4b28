"""The jobs of the bridge. Every job may run late, twice, or in two processes at once."""

from threading import Event

from a2a_bridge.service import exchange_log, follow_ups, push_delivery, repeats, shares
from a2a_bridge.service.push_delivery import PushOutbox
from a2a_bridge.service.tasks import journal
from a2a_bridge.service.threads import indexing
from kit.jobs import job
from kit.outbox import Sender
from kit.sql import advisory_lock
from webhooks.service.sending import client


@job("a2a.forget_keys")
def forget_keys() -> int:
    """Delete the rows of sends with an Idempotency-Key, and of follow-ups, after 24 h; returns their number."""
    return repeats.forget_old() + follow_ups.forget_old()


@job("a2a.forget_tasks")
def forget_tasks(tasks_kept_days: int) -> int:
    """Delete tasks of the journal whose state was set longer ago, and threads without tasks; returns the number of
    tasks.
    """
    deleted = journal.forget_old(tasks_kept_days)
    indexing.delete_empty()
    return deleted


@job("a2a.trim_tasks")
def trim_tasks() -> int:
    """Delete the oldest finished tasks of callers with too many in the journal; returns their number."""
    return journal.trim()


@job("a2a.index_threads")
def index_threads() -> int:
    """Read new tasks of the journal into the threads of their callers; returns their number.

    Only one job at a time runs this.
    """
    with advisory_lock("indexing threads") as is_alone:
        return indexing.index_all() if is_alone else 0


@job("a2a.push_due")
def push_due(stopping: Event | None = None) -> int:
    """Queue the ends of tasks that no process has sent, then send due pushes; returns the number of ends and
    attempts.
    """
    return push_delivery.queue_missed_ends() + Sender(PushOutbox(client()), stopping).run()


@job("a2a.forget_pushes")
def forget_pushes() -> int:
    """Delete the push addresses of deleted tasks; returns their number."""
    return push_delivery.forget_configs()


@job("a2a.forget_shares")
def forget_shares() -> int:
    """Delete shared answers that have expired; returns their number."""
    return shares.forget_expired()


@job("a2a.forget_exchanges")
def forget_exchanges() -> int:
    """Delete recorded exchanges that are too old, or whose ask is no longer kept; returns their number."""
    return exchange_log.forget_old()


@job("a2a.trim_exchanges")
def trim_exchanges() -> int:
    """Delete the oldest recorded exchanges of callers with too many; returns their number."""
    return exchange_log.trim()
