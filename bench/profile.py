"""Where the time goes: py-spy on a server under load; raw stacks for a flame graph, and the top functions."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

from bench import load
from bench.children import LOAD_CORE, on_core
from bench.targets import Target

SECONDS = 10
TOP = 25


def is_there() -> bool:
    """Whether this machine has py-spy (`pip install py-spy`; it is no dependency)."""
    return shutil.which("py-spy") is not None


def profile(target: Target, connections: int, folder: Path) -> Path:
    """Record while loading; the file with the top list, the raw stacks beside it."""
    folder.mkdir(exist_ok=True)
    raw = folder / f"{target.name}-{connections}.raw"
    command = ["py-spy", "record", "--pid", str(target.server.process.pid), "--duration", str(SECONDS)]
    command += ["--rate", "250", "--threads", "--format", "raw", "--output", str(raw)]
    with (
        on_core(LOAD_CORE),
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as spy,
    ):
        load.measure(target, connections, SECONDS + 2)
        spy.wait()
    listed = raw.with_suffix(".txt")
    listed.write_text(_top(raw.read_text()))
    return listed


def _top(raw: str) -> str:
    """For each thread, the functions by their own samples and by all samples they are part of."""
    own: dict[str, Counter[str]] = {}
    whole: dict[str, Counter[str]] = {}
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = [frame.rpartition(":")[0] or frame for frame in stack.split(";")]
        if frames:
            own.setdefault(thread, Counter())[frames[-1]] += int(count)
            whole.setdefault(thread, Counter()).update(dict.fromkeys(set(frames), int(count)))
    total = sum(counts.total() for counts in own.values()) or 1
    parts = []
    for thread, counts in sorted(own.items(), key=lambda each: -each[1].total()):
        parts.append(f"{thread}: {counts.total() / total:.0%} of all samples")
        for title, table in (("own", counts), ("with what it calls", whole[thread])):
            parts.append(f"  {title}")
            parts += [f"  {count / total:6.1%}  {name}" for name, count in table.most_common(TOP)]
    return "\n".join(parts) + "\n"
