"""The jobs of the embedded hub: the same as Celery's, and none of them in another's way."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from a2a_bridge.models import SendKey
from agents.models import Turn
from hub.celery import app
from hub.job_thread import JobThread, make_job_threads
from kit.jobs import JOBS
from lab.hub_storage import hub_env
from lab.processes import Program, python
from lab.waiting import until
from tests.native.rows import Person, make_agent, make_turn

WITHIN_S = 30
AT_ONCE = """
import signal
import django
django.setup()
from hub.job_thread import make_job_threads
for thread in make_job_threads():
    thread.start()
    thread.wake()
signal.pause()
"""


@contextmanager
def refusing_deletes(table: str) -> Iterator[None]:
    """The database lets nothing go from that table."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TRIGGER stays BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'it stays'); END")
        try:
            yield
        finally:
            cursor.execute("DROP TRIGGER stays")


@pytest.mark.django_db(transaction=True)
def test_a_job_that_fails_keeps_no_other_from_its_turn(
    alice: Person, bob: Person, caplog: pytest.LogCaptureFixture
) -> None:
    long_ago = timezone.now() - timedelta(days=500)
    make_turn(make_agent(alice.user), bob.user, asked_at=long_ago, settled_at=long_ago, released_at=long_ago)
    SendKey.objects.create(caller=bob.user, key="old", created_at=long_ago)
    threads = make_job_threads()
    with refusing_deletes(Turn._meta.db_table):
        for thread in threads:
            thread.start()
            thread.wake()
        until(lambda: not SendKey.objects.exists(), "what comes after retention is done", within_s=WITHIN_S)
        for thread in threads:
            thread.stop()
    assert Turn.objects.count() == 1
    failed = [vars(record)["job"] for record in caplog.records if record.msg == "job.failed"]
    assert failed == ["agents.retain"]


def test_both_homes_run_the_same_jobs(tmp_path: Path) -> None:
    """In a database without tables each of them fails, and says which it is."""
    env = {"DATA_DIR": str(tmp_path / "data"), "LOG_FORMAT": "json", "DJANGO_SETTINGS_MODULE": "hub.settings"}
    env["EMAIL"] = "CONSOLE"  # without mail, the job that sends it asks the database nothing
    env["ACTS_KEPT_DAYS"] = "30"  # without days, the job that deletes acts asks the database nothing
    program = Program(python("-c", AT_ONCE), tmp_path / "log", env=hub_env(env))
    program.start()
    sent = {row["task"] for row in settings.CELERY_BEAT_SCHEDULE.values()}
    senders = {"webhooks.deliver_due", "a2a.push_due"}
    assert senders < sent

    def tried() -> set[str]:
        program.check()
        events = [json.loads(line) for line in program.lines if line.endswith("}")]
        return {event["job"] for event in events if event["event"] == "job.failed"}

    try:
        until(lambda: tried() == sent - senders, "all jobs but the senders' are tried", within_s=WITHIN_S)
    finally:
        program.kill()


@pytest.mark.parametrize("lasts", [True, False])
def test_a_job_that_outlasts_the_stop_is_told(lasts: bool, caplog: pytest.LogCaptureFixture) -> None:
    began, done = threading.Event(), threading.Event()

    def work(stopping: threading.Event) -> None:
        began.set()
        (done if lasts else stopping).wait(WITHIN_S)

    thread = JobThread("long", work)
    thread.start()
    thread.wake()
    assert began.wait(WITHIN_S)
    thread.stop(within_s=0.1 if lasts else WITHIN_S)
    told = [(record.msg, vars(record)["job"]) for record in caplog.records]
    assert told == ([("job.unfinished", "long")] if lasts else [])
    done.set()
    thread.stop(within_s=WITHIN_S)
    assert len(caplog.records) == len(told)


def test_a_thread_that_finds_nothing_to_do_looks_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.job_thread.EVERY_S", 0.01)
    monkeypatch.setattr("hub.job_thread.QUIET_AFTER_S", 0.0)
    monkeypatch.setattr("hub.job_thread.QUIET_EVERY_S", 3600.0)
    has_run = threading.Event()

    def work(stopping: threading.Event) -> bool:
        has_run.set()
        return False

    thread = JobThread("quiet", work)
    thread.start()
    thread.wake()
    assert has_run.wait(WITHIN_S)
    until(lambda: thread.wait_s == 3600.0, "it is quiet", within_s=WITHIN_S)
    has_run.clear()
    thread.wake()
    assert has_run.wait(WITHIN_S)
    thread.stop()


def test_a_thread_that_does_something_looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.job_thread.EVERY_S", 0.01)
    monkeypatch.setattr("hub.job_thread.QUIET_EVERY_S", 3600.0)
    runs: list[int] = []

    def work(stopping: threading.Event) -> bool:
        runs.append(1)
        return True

    thread = JobThread("busy", work)
    thread.start()
    thread.wake()
    until(lambda: len(runs) > 3, "it runs again and again", within_s=WITHIN_S)
    thread.stop()


def test_both_engines_know_every_job_of_the_schedule() -> None:
    wanted = {job["task"] for job in settings.CELERY_BEAT_SCHEDULE.values()}
    make_job_threads()
    assert wanted - JOBS.keys() == set()
    app.loader.import_default_modules()  # as a worker begins
    assert wanted - app.tasks.keys() == set()
