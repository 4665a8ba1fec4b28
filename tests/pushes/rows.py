"""Push configs and pushes as rows, and what the job does with them."""

import json
from typing import Any

from a2a_bridge.models import Push, PushConfig
from a2a_bridge.service.push_configs import seal
from a2a_bridge.service.push_delivery import PushOutbox
from a2a_bridge.wire.requests import PushTarget
from kit.clock import db_now
from kit.outbox import AttemptResult, Leased, Sender, SendLimits, lease, settle
from tests.native.rows import Person
from webhooks.service.sending import client


def config_of(
    whose: Person, url: str = "https://push.invalid/", task_id: str = "task-1", **fields: Any
) -> PushConfig:
    made = {"config_id": f"push-{PushConfig.objects.count()}", "context_id": "c", "chat_id": f"chat of {task_id}"}
    return PushConfig.objects.create(
        task_id=task_id,
        caller=whose.user,
        url=url,
        sealed=seal(PushTarget(url=url)),
        **(made | {"touched_at": db_now()} | fields),
    )


def push_of(config: PushConfig, body: Any = None, **fields: Any) -> Push:
    """The next push of a config."""
    now = db_now()
    made = {"seq": config.pushes.count() + 1, "payload": json.dumps(body or {}), "queued_at": now}
    return Push.objects.create(config=config, **(made | {"next_attempt_at": now} | fields))


def send_due() -> int:
    """Send the pushes that are due; the number of attempts."""
    return Sender(PushOutbox(client())).run()


def lease_due() -> list[Leased]:
    """The pushes that a sender begins to send now."""
    outbox = PushOutbox(client())
    return lease(outbox, SendLimits(outbox))


def end_lease(leased: Leased, outcome: AttemptResult) -> bool:
    return settle(PushOutbox(client()), leased, outcome)


def make_due() -> None:
    """Make all later attempts due now; leases run out."""
    Push.objects.exclude(next_attempt_at=None).update(next_attempt_at=db_now())
