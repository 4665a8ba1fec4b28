"""Logs are events: one line each, `event key=value`, never a token."""

import logging
import re

from kit import trace

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_TOKEN = re.compile(r"(cw_sess_|cw_app_|cw_code_|cw_dev_|ck_live_|gh[a-z]_)\w{4,}")


class EventFormatter(logging.Formatter):
    """Time, level, event, the fields given by `extra`, and the trace of the request it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """One event as a line, with the traceback below it when there is one."""
        fields = [f"{key}={value!r}" for key, value in vars(record).items() if key not in _STANDARD]
        if trace_id := trace.trace_id(trace.current()):
            fields.append(f"trace_id={trace_id!r}")
        line = " ".join([self.formatTime(record), record.levelname, record.name, record.getMessage(), *fields])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return _TOKEN.sub(r"\1…", line)  # nothing of ours logs one; what a library says is another matter
