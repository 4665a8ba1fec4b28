"""Profiles of a server under load by py-spy: raw stacks for a flame graph, and the top functions."""

import shutil
from collections import Counter
from pathlib import Path

from lab.bench import load
from lab.bench.hubs import BenchTarget
from lab.bench.meter import LOAD_CORE
from lab.processes import Program

SECONDS = 10
TOP = 25


def is_there() -> bool:
    """True if this machine has py-spy (`pip install py-spy`; it is no dependency)."""
    return shutil.which("py-spy") is not None


def profile(target: BenchTarget, connections: int, folder: Path) -> Path:
    """Record while loading; the file with the top list, the raw stacks beside it.

    Only samples that hold the interpreter's lock count: py-spy cannot tell a waiting thread from a working one
    everywhere. py-spy does not stop the server to look, so some stacks are cut short. Work without the
    lock (commits, sockets) shows in the threads' processor time.
    """
    folder.mkdir(exist_ok=True)
    raw, pid = folder / f"{target.name}-{connections}.raw", target.server.pid
    command = ["py-spy", "record", "--pid", str(pid), "--duration", str(SECONDS), "--rate", "100"]
    command += ["--nonblocking", "--gil", "--threads", "--format", "raw", "--output", str(raw)]
    before = _thread_times(pid)
    with Program(command, raw.with_suffix(".log"), core=LOAD_CORE) as spy:
        run = load.measure(target, connections, SECONDS + 2)
        spy.wait()
    times = {tid: time - before.get(tid, Counter()) for tid, time in _thread_times(pid).items()}
    listed = raw.with_suffix(".txt")
    listed.write_text(f"{run.asks_per_s:.0f} asks/s under py-spy\n{_split(times)}\n{_top(raw.read_text())}")
    return listed


def _thread_times(pid: int) -> dict[str, Counter[str]]:
    """Processor time of each thread, in ticks of user and of system time."""
    times: dict[str, Counter[str]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        times[task.name] = Counter({"user": int(fields[11]), "system": int(fields[12])})
    return times


def _split(times: dict[str, Counter[str]]) -> str:
    total = sum(time.total() for time in times.values()) or 1
    lines = ["share of processor time by thread"]
    for tid, time in sorted(times.items(), key=lambda each: -each[1].total()):
        if time.total() > total / 100:
            lines.append(f"  ({tid})  {time['user'] / total:.0%} user, {time['system'] / total:.0%} system")
    return "\n".join(lines)


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
