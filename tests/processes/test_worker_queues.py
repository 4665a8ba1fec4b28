"""The order in which a Celery worker takes jobs."""

from pathlib import Path

import pytest
from celery import Celery
from django.conf import settings

from lab.hub_storage import hub_env
from lab.processes import Program, printed, python
from lab.servers import Redis
from lab.waiting import until

WITHIN_S = 60.0
SENDERS = 3


def ran(file: Path, count: int) -> list[str]:
    """The jobs that ran, in their order, as soon as there are so many."""
    until(lambda: file.read_text().count("\n") >= count, f"{count} jobs ran", within_s=WITHIN_S)
    return file.read_text().splitlines()


@pytest.mark.slow
@pytest.mark.distributed
def test_a_sweep_waits_for_one_sender_and_not_for_all_that_were_called_before(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    file.touch()
    redis = Redis(tmp_path)
    redis.start()
    env = hub_env({
        "RAN_FILE": str(file), "REDIS_URL": redis.url(), "DATA_DIR": str(tmp_path),
        "DATABASE_URL": "postgresql://127.0.0.1/never-opened", "DJANGO_SETTINGS_MODULE": "hub.settings",
    })  # fmt: skip
    command = python("-m", "celery", "-A", "tests.processes.queue_jobs", "worker", "-c", "1", "-l", "INFO")
    worker = Program(command, tmp_path / "worker.log", env=env, is_ready=printed(" ready."), within_s=WITHIN_S)
    app = Celery("callers", broker=redis.url(), set_as_current=False)
    app.conf.task_routes = settings.CELERY_TASK_ROUTES
    try:
        worker.start()
        for _ in range(SENDERS):
            app.send_task("webhooks.deliver_due")
        ran(file, 1)
        app.send_task("hub.sweep")
        assert ran(file, SENDERS + 1) == ["deliver", "sweep", *["deliver"] * (SENDERS - 1)]
    finally:
        worker.kill()
        redis.stop()
