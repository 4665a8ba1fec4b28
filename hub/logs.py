"""Logs are events: one line each, `event key=value`, never a token."""

import logging

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class EventFormatter(logging.Formatter):
    """Time, level, event and the fields given by `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One event as a line, with the traceback below it when there is one."""
        fields = [f"{key}={value!r}" for key, value in vars(record).items() if key not in _STANDARD]
        line = " ".join([self.formatTime(record), record.levelname, record.name, record.getMessage(), *fields])
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line
