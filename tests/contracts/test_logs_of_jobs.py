"""Logs of worker and beat: one fact a line, no escape codes, no arguments of jobs."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
from celery.app.trace import LOG_SUCCESS

from hub.celery import OF_EACH_JOB, log_as_the_hub
from hub.logs import EventFormatter, JobRecords, JsonFormatter

LOGGERS = ("", "celery", *OF_EACH_JOB, "django", "uvicorn", "celery.beat")
DATA = {
    "id": "an-id",
    "name": "hub.sweep",
    "args": "[canary]",
    "exc": "canary",
    "description": "raised unexpected",
}


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Loggers belong to the whole process."""
    kept = [(one, one.level, one.handlers[:], one.filters[:]) for one in map(logging.getLogger, LOGGERS)]
    yield
    for logger, level, handlers, filters in kept:
        logger.setLevel(level)
        logger.handlers[:], logger.filters[:] = handlers, filters


def record(text: str, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    return logging.getLogger("celery.app.trace").makeRecord(
        "celery.app.trace", level, __file__, 1, text, (), None, extra=extra
    )


def failed() -> logging.LogRecord:
    try:
        raise ValueError("canary")
    except ValueError:
        made = record("Task %(name)s raised: %(exc)s", logging.ERROR, data=DATA)
        made.exc_info = sys.exc_info()
    assert JobRecords().filter(made)
    return made


@pytest.mark.parametrize("formatter", [EventFormatter(), JsonFormatter()])
def test_a_message_with_its_colours_is_told_once_and_plainly(formatter: logging.Formatter) -> None:
    line = formatter.format(record("Started\n\x1b[36mnow\x1b[0m", color_message="Started \x1b[36m%d\x1b[0m"))
    assert "color_message" not in line
    assert "\x1b" not in line
    assert "\n" not in line
    assert line.count("Started") == 1


def test_a_job_that_failed_is_one_event_without_its_arguments() -> None:
    event = json.loads(JsonFormatter().format(failed()))
    assert (event["event"], event["job"], event["level"]) == ("job.failed", "hub.sweep", "ERROR")
    assert event["exception"].startswith("builtins.ValueError")
    assert "canary" not in json.dumps(event)
    assert "job.failed job='hub.sweep'\nTraceback" in EventFormatter().format(failed())


def said(level: int) -> list[str]:
    """The lines that worker and beat log of one job at that level."""
    log_as_the_hub(level)
    into = io.StringIO()
    handler = logging.StreamHandler(into)
    handler.setFormatter(EventFormatter())
    logging.getLogger().handlers[:] = [handler]
    logging.getLogger("celery.worker.strategy").info("received", extra={"data": DATA})
    logging.getLogger("celery.app.trace").info(LOG_SUCCESS, {**DATA, "runtime": 1, "return_value": 2})
    logging.getLogger("celery.beat").info("Scheduler: Sending due task %s (%s)", "sweep", "hub.sweep")
    logging.getLogger("celery.beat").info("beat: Starting...")
    logging.getLogger("celery.apps.worker").info("%s ready.", "celery@here")
    return into.getvalue().splitlines()


def test_a_job_that_went_well_says_nothing_at_info() -> None:
    lines = said(logging.INFO)
    assert [line.partition("celery.")[2] for line in lines] == [
        "beat beat: Starting...",
        "apps.worker celery@here ready.",
    ]


def test_at_debug_each_job_has_its_lines_without_arguments() -> None:
    lines = said(logging.DEBUG)
    assert len(lines) == 5
    assert "canary" not in "".join(lines)


def test_at_warning_a_healthy_worker_says_nothing() -> None:
    assert said(logging.WARNING) == []
