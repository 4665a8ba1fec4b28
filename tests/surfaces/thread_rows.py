"""Changes of rows of threads; run in a process of its own against a hub's database."""

from datetime import timedelta

from a2a_bridge.models import StoredTask, Thread
from kit.clock import db_now


def age(task_id: str, days: int) -> int:
    """Set a task and its thread back by so many days; returns the number of tasks."""
    then = db_now() - timedelta(days=days)
    Thread.objects.filter(tasks__task=task_id).update(began_at=then, last_asked_at=then)
    return StoredTask.objects.filter(pk=task_id).update(updated_at=then)
