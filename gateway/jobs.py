"""Work of the gateway that must be done whatever process lives. Every job may run twice, or late."""

from celery import shared_task

from gateway.agent_protocol import store


@shared_task(name="gateway.forget", ignore_result=True)
def forget(tasks_kept_days: int) -> int:
    """Delete tasks of the Agent Protocol that were not used for so long; how many rows went."""
    return store.forget_tasks(tasks_kept_days)
