"""The processor time of a run by kind of process: web processes, PostgreSQL, Redis, agents, load, all others.

Servers run on the first cores that this process may use, agents and load on the last one.
"""

import os
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.processes import TICKS_A_SECOND, Program

CPUS = sorted(os.sched_getaffinity(0))
SERVER_CORES, LOAD_CORE = CPUS[:-1] or CPUS, CPUS[-1]


@dataclass(frozen=True)
class Used:
    """Processor seconds, by the processes that used them.

    `others`: the share of all our cores that other programs, or the machine's host, used; `stolen`: the same of
    the web processes' cores. `load_core`: the share of the load's core that all programs used.
    """

    took_s: float
    web_s: float
    postgres_s: float
    redis_s: float
    agents_s: float
    load_s: float
    others: float
    stolen: float
    load_core: float


class Meter:
    """Counts the processor time since the object was made. PostgreSQL and Redis are those that this process
    started.
    """

    def __init__(self, web: Sequence[Program], agents: Sequence[Program] = ()) -> None:
        self._web, self._agents = web, agents
        self._web_cores = {one.core for one in web if one.core is not None} or set(SERVER_CORES)
        self._began = time.monotonic()
        self._before, self._busy_before = self._now(), busy_s()

    def used(self) -> Used:
        """The processor time used until now."""
        spent = {who: now - self._before[who] for who, now in self._now().items()}
        busy = {core: now - self._busy_before[core] for core, now in busy_s().items()}
        took_s = time.monotonic() - self._began
        on_web_cores = sum(busy[core] for core in self._web_cores)
        return Used(
            took_s=took_s,
            others=max(0.0, sum(busy.values()) - sum(spent.values())) / (took_s * len(CPUS)),
            stolen=max(0.0, on_web_cores - spent["web"]) / took_s,
            load_core=busy[LOAD_CORE] / took_s,
            **{f"{who}_s": one for who, one in spent.items()},
        )

    def _now(self) -> dict[str, float]:
        family = list(kin(os.getpid()))
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {
            "web": sum(one.cpu_s() for one in self._web),
            "agents": sum(one.cpu_s() for one in self._agents),
            "postgres": sum(one.cpu_s for one in family if one.program == "postgres"),
            "redis": sum(one.cpu_s for one in family if one.program == "redis-server"),
            "load": sum(one.ru_utime + one.ru_stime for one in own),
        }


@dataclass(frozen=True)
class Relative:
    """A descendant of this process, with the processor time that it used."""

    pid: int
    parent: int
    program: str
    cpu_s: float


def kin(pid: int) -> Iterator[Relative]:
    """The descendants of a process."""
    processes = list(_all_processes())
    wanted = [pid]
    while wanted:
        found = [one for one in processes if one.parent in wanted]
        yield from found
        wanted = [one.pid for one in found]


def place(pids: Iterable[int], cores: Iterable[int]) -> None:
    """Move running processes, every thread of them, to some cores."""
    wanted = set(cores)
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), wanted)


def busy_s() -> dict[int, float]:
    """The seconds that each of our cores has worked since the machine started, for all processes."""
    lines = {line.split()[0]: line.split()[1:] for line in Path("/proc/stat").read_text().splitlines()}
    times = {core: list(map(int, lines[f"cpu{core}"])) for core in CPUS}
    return {core: (sum(one[:3]) + sum(one[5:8])) / TICKS_A_SECOND for core, one in times.items()}


def _all_processes() -> Iterator[Relative]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        program = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 1 :].split()
        spent = sum(int(field) for field in fields[11:13]) / TICKS_A_SECOND
        yield Relative(int(stat.parent.name), int(fields[1]), program, spent)
