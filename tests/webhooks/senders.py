"""The senders of webhooks and pushes of a running hub: killed, started again, and as if a minute had passed."""

from lab.hub_process import HubProcess
from tests.channel.agents import sql


def kill_sender(hub: HubProcess) -> None:
    """kill -9 of whatever sends: the worker with its children, or the one process there is."""
    if hub.worker is None:
        hub.kill9()
    else:
        hub.worker.kill()


def start_sender(hub: HubProcess) -> None:
    if hub.worker is None:
        hub.serve(0)
    else:
        hub.start_worker()


def end_leases(hub: HubProcess, table: str) -> None:
    """A minute passes for what was being sent."""
    sql(hub, f"UPDATE {table} SET next_attempt_at = queued_at WHERE status = 'sending'")
