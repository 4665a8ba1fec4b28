"""`python -m lab.bench.soak_server FOLDER [trace]`: `manage.py serve` that counts tasks and objects on SIGUSR1.

Each signal adds a line of JSON to a file of its own there; with `trace` also where the memory was allocated that
came since the line before. SIGUSR2 collects garbage first: what is left then is held.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from types import FrameType

from django.core.management import execute_from_command_line

TOP = 25
FRAMES = 8


def counts_file(folder: Path, pid: int) -> Path:
    """Where the process of that number writes."""
    return folder / f"{pid}.counts"


class Counts:
    """Writes one line at each signal. The signal comes while the loop runs, in its thread."""

    def __init__(self, path: Path, *, traces: bool) -> None:
        self._path = path
        self._before: tracemalloc.Snapshot | None = None
        if traces:
            tracemalloc.start(FRAMES)

    def __call__(self, signal_number: int, frame: FrameType | None) -> None:
        if signal_number == signal.SIGUSR2:
            gc.collect()
        tasks = Counter(task.get_name() for task in asyncio.all_tasks())
        types = Counter(type(one).__qualname__ for one in gc.get_objects())
        line = {
            "tasks": tasks.total(),
            "objects": types.total(),
            "names": tasks.most_common(TOP),
            "types": types.most_common(TOP),
        }
        if tracemalloc.is_tracing():
            line["grown"] = self._grown()
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _grown(self) -> list[str]:
        gc.collect()
        now = tracemalloc.take_snapshot()
        before, self._before = self._before, now
        if before is None:
            return []
        changes = now.compare_to(before, "traceback")[:TOP]
        return ["\n".join([str(one), *one.traceback.format()]) for one in changes]


if __name__ == "__main__":
    counts = counts_file(Path(sys.argv[1]), os.getpid())
    count = Counts(counts, traces="trace" in sys.argv[2:])
    signal.signal(signal.SIGUSR1, count)
    signal.signal(signal.SIGUSR2, count)
    execute_from_command_line(["manage.py", "serve"])
