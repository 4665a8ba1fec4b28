"""`python -m lab.bench.probes KIND FOLDER`: `manage.py serve` that counts, and writes its counts on a signal.

Each SIGUSR1 adds a line of JSON to a file of the process in the folder. By kind:

- `calls`: an empty list when it begins to count its calls, the counts when it ends. A count is
  `[thread, file, function, C function, times]`: calls of the function where `C function` is empty, else calls of
  that C function in it. Files of the project are named from its root, others begin with a slash.
- `growth`: its asyncio tasks and objects, and the number of objects that its garbage collections have found.
  SIGUSR2 does the same after a collection.
- `traced-growth`: also where the memory was allocated that came since the line before; slow.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import sysconfig
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from django.core.management import execute_from_command_line

from lab import ROOT
from lab.processes import python
from lab.waiting import until

TOP = 25
FRAMES = 8
WITHIN_S = 60.0


def serve_command(kind: str, folder: Path) -> list[str]:
    """The command of a web process that counts."""
    return python("-m", "lab.bench.probes", kind, str(folder))


@dataclass(frozen=True)
class Probe:
    """Reads the counts of a running process."""

    pid: int
    folder: Path

    def read(self, *, collect: bool = False) -> Any:
        """Ask for a line and wait for it. `collect`: after a collection of garbage."""
        before = len(self._lines())
        os.kill(self.pid, signal.SIGUSR2 if collect else signal.SIGUSR1)
        until(lambda: len(self._lines()) > before, "the process told its counts", within_s=WITHIN_S)
        return json.loads(self._lines()[-1])

    def _lines(self) -> list[str]:
        path = _counts_file(self.folder, self.pid)
        text = path.read_text() if path.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def _counts_file(folder: Path, pid: int) -> Path:
    return folder / f"{pid}.counts"


class Calls:
    """The profile function of every thread, from the thread's start. Counting begins with the first signal."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, CodeType, str]] = Counter()
        self._counts_now = False
        threading.setprofile(self._count)

    def tell(self) -> list[tuple[str, str, str, str, int]]:
        """Begin or end the counting; returns the counts."""
        self._counts_now = not self._counts_now
        sys.setprofile(self._count if self._counts_now else None)
        counted = [] if self._counts_now else self._rows()
        self._counts.clear()
        return counted

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


class Growth:
    """Counts asyncio tasks and objects, whose number may grow."""

    def __init__(self, *, is_traced: bool) -> None:
        self._before: tracemalloc.Snapshot | None = None
        if is_traced:
            tracemalloc.start(FRAMES)

    def tell(self) -> dict[str, Any]:
        """Tasks and objects by name."""
        tasks = Counter(task.get_name() for task in asyncio.all_tasks())
        types = Counter(type(one).__qualname__ for one in gc.get_objects())
        told = {
            "tasks": tasks.total(),
            "objects": types.total(),
            "collected": sum(one["collected"] for one in gc.get_stats()),
            "names": tasks.most_common(TOP),
            "types": types.most_common(TOP),
        }
        return told | ({"grown": self._grown()} if tracemalloc.is_tracing() else {})

    def _grown(self) -> list[str]:
        gc.collect()
        now = tracemalloc.take_snapshot()
        before, self._before = self._before, now
        if before is None:
            return []
        changes = now.compare_to(before, "traceback")[:TOP]
        return ["\n".join([str(one), *one.traceback.format()]) for one in changes]


def _serve(kind: str, folder: Path) -> None:
    """Serve; a signal comes while the loop runs, in its thread."""
    tell: Callable[[], Any] = Calls().tell if kind == "calls" else Growth(is_traced=kind == "traced-growth").tell

    def on_signal(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR2:
            gc.collect()
        with _counts_file(folder, os.getpid()).open("a") as file:
            file.write(json.dumps(tell()) + "\n")

    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGUSR2, on_signal)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
    execute_from_command_line(["manage.py", "serve"])


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]))
