"""Push configs and pushes as rows, and what the job does with them."""

import json
from typing import Any

from a2a_bridge.models import Push, PushConfig
from a2a_bridge.service.pushes.configs import seal
from a2a_bridge.service.pushes.queue import PUSHES
from a2a_bridge.wire.requests import PushTarget
from kit.clock import db_now
from tests.native.rows import Person
from webhooks.sending import Sender, client


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
    """How many attempts."""
    return Sender(client(), queue=PUSHES).run()


def make_due() -> None:
    """Whatever is to be tried again some time, is now; leases run out."""
    Push.objects.exclude(next_attempt_at=None).update(next_attempt_at=db_now())
