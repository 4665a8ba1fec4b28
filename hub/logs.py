"""Logs are events: one line each, `event key=value` or a JSON object, never a token; and how many were errors."""

import logging
import re
import traceback
from collections import Counter, deque
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import msgspec

from kit import trace
from kit.redaction import without_secrets

NOT_IMPLEMENTED = 501
ERRORS_KEPT = 10_000
ERRORS_WINDOW_S = 3600.0

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_STANDARD |= {"color_message"}  # a field of uvicorn: the message with escape codes

MAX_LINES = 200

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class EventFormatter(logging.Formatter):
    """Writes time, level, event, the fields given by `extra`, and the trace of the request."""

    def format(self, record: logging.LogRecord) -> str:
        """One event as a line, with the traceback below it when there is one."""
        fields = [f"{key}={value!r}" for key, value in fields_of(record).items()]
        message = _CONTROL.sub(_escaped, record.getMessage().strip())
        line = " ".join([self.formatTime(record), record.levelname, record.name, message, *fields])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return without_secrets(line)


class JsonFormatter(logging.Formatter):
    """Writes the fields of `EventFormatter` as one JSON object a line, for programs that collect logs."""

    def format(self, record: logging.LogRecord) -> str:
        """One event. `exception` has types and frames but no text: databases quote rows in the texts of
        exceptions.
        """
        event: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        event |= {key: value for key, value in fields_of(record).items() if key not in event}
        if record.exc_info:
            event["exception"] = shape_of(record.exc_info[1])
        return msgspec.json.encode({key: _plain(value) for key, value in event.items()}).decode()


class JobRecords(logging.Filter):
    """Names Celery's records about jobs as the embedded hub does (`job.failed`), and removes the jobs' arguments.

    Records of jobs that the scheduler sends each second are left out above DEBUG.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; False: the record is not logged."""
        data = vars(record).pop("data", None)
        if isinstance(data, dict) and record.levelno >= logging.ERROR and record.exc_info:
            record.msg, record.args = "job.failed", ()
            record.job = data.get("name", "")
        is_of_schedule = record.levelno == logging.INFO and str(record.msg).startswith("Scheduler: Sending")
        return not is_of_schedule or logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


class Faults(logging.Filter):
    """Leaves out Django's record of a response 501: the caller asked for what the hub does not do."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False: the record is not logged."""
        return getattr(record, "status_code", None) != NOT_IMPLEMENTED


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of `extra`, and `trace_id` where a request is being served."""
    fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    if chat_id := trace.current_turn.get():
        fields.setdefault("chat_id", chat_id)
    if trace_id := trace.trace_id(trace.current_span.get()):
        fields["trace_id"] = trace_id
    return fields


def shape_of(failure: BaseException | None) -> str:
    """The types and frames of an exception and of the exceptions that caused it, without their texts."""
    lines: list[str] = []
    while failure is not None and len(lines) < MAX_LINES:
        lines.append(f"{type(failure).__module__}.{type(failure).__qualname__}")
        frames = traceback.extract_tb(failure.__traceback__)
        lines += [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        failure = failure.__cause__ or failure.__context__
    return "\n".join(lines[:MAX_LINES])


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _plain(value: object) -> bool | int | float | str | None:
    if value is None or isinstance(value, bool | int | float):
        return value
    return without_secrets(str(value)).encode(errors="replace").decode()  # JSON has no lone surrogates


_totals: Counter[str] = Counter()
_lately: deque[tuple[float, str]] = deque(maxlen=ERRORS_KEPT)


class ErrorCounts(logging.Handler):
    """Counts records of level ERROR and above by the name of their event; their texts stay in the log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record. A message with values in it, as libraries log, counts under the name of its logger."""
        event = record.msg if isinstance(record.msg, str) and record.msg.replace(".", "_").isidentifier() else ""
        _lately.append((monotonic(), event or record.name))
        _totals[event or record.name] += 1


def errors_lately() -> list[tuple[str, int]]:
    """The events of the last hour and how often each came, the most frequent first."""
    since = monotonic() - ERRORS_WINDOW_S
    return Counter(name for at, name in list(_lately) if at > since).most_common()


def error_totals() -> list[tuple[str, int]]:
    """The same events, counted since this process started.

    The names of errors are in the code, so there are few of them.
    """
    return list(_totals.items())
