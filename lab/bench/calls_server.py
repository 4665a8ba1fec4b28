"""`python -m lab.bench.calls_server FILE`: `manage.py serve` that counts its calls between two SIGUSR1.

Each signal adds a line of JSON to the file: an empty list when it begins to count, the counts when it ends. A
count is `[thread, file, function, C function, times]`: calls of the function where `C function` is empty, else
calls of that C function in it. Files of the project are named from its root, others begin with a slash.
"""

import json
import signal
import sys
import sysconfig
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from django.core.management import execute_from_command_line

from lab import ROOT


class Calls:
    """The profile function of every thread, from the thread's start. It counts nothing until the first signal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts: Counter[tuple[int, CodeType, str]] = Counter()
        self._counts_now = False
        threading.setprofile(self._count)

    def toggle(self, signal_number: int, frame: FrameType | None) -> None:
        """Begin or end. The signal comes while the loop runs, in its thread."""
        self._counts_now = not self._counts_now
        sys.setprofile(self._count if self._counts_now else None)
        counted = [] if self._counts_now else self._rows()
        self._counts.clear()
        with self._path.open("a") as file:
            file.write(json.dumps(counted) + "\n")

    def _count(self, frame: FrameType, event: str, called: Any) -> None:
        if self._counts_now:
            if event == "call":
                self._counts[threading.get_ident(), frame.f_code, ""] += 1
            elif event == "c_call":
                self._counts[threading.get_ident(), frame.f_code, called.__qualname__] += 1

    def _rows(self) -> list[tuple[str, str, str, str, int]]:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        return [
            (names.get(ident, ""), _file_of(code), code.co_qualname, c_function, times)
            for (ident, code, c_function), times in list(self._counts.items())
        ]


def _file_of(code: CodeType) -> str:
    path, libraries = Path(code.co_filename), Path(sysconfig.get_path("purelib"))
    if path.is_relative_to(libraries):
        return f"/{path.relative_to(libraries)}"
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, Calls(Path(sys.argv[1])).toggle)
    execute_from_command_line(["manage.py", "serve"])
