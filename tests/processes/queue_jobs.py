"""A Celery application with the settings of the hub, whose jobs write into a file that they ran."""

import os
import time
from pathlib import Path

from celery import Celery

RAN = Path(os.environ["RAN_FILE"])
SENDS_FOR_S = 1.0

app = Celery("queues")
app.config_from_object("django.conf:settings", namespace="CELERY")


def note(name: str) -> None:
    """Write that a job began."""
    with RAN.open("a") as file:
        file.write(f"{name}\n")


@app.task(name="webhooks.deliver_due")
def deliver_due() -> None:
    """Take as long as a sender with much to send."""
    note("deliver")
    time.sleep(SENDS_FOR_S)


@app.task(name="hub.sweep")
def sweep() -> None:
    """Do nothing more."""
    note("sweep")
