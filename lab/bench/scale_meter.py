"""Who used the processors during a run: web processes, PostgreSQL, Redis, agents, load, all others."""

import os
import resource
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.bench.cores import CPUS
from lab.processes import TICKS_A_SECOND, Program


@dataclass(frozen=True)
class Used:
    """Processor seconds by who used them. `others`: what strangers took, as a share of all our cores."""

    took_s: float
    web_s: float
    postgres_s: float
    redis_s: float
    agents_s: float
    load_s: float
    others: float


class Meter:
    """Counts from when it is made. PostgreSQL and Redis are those that this process started."""

    def __init__(self, web: Sequence[Program], agents: Sequence[Program] = ()) -> None:
        self._web, self._agents = web, agents
        self._began = time.monotonic()
        self._before = self._now()

    def used(self) -> Used:
        """What was used until now."""
        spent = {who: now - self._before[who] for who, now in self._now().items()}
        took_s = time.monotonic() - self._began
        everything = spent.pop("all")
        others = max(0.0, everything - sum(spent.values())) / (took_s * len(CPUS))
        return Used(took_s=took_s, others=others, **{f"{who}_s": one for who, one in spent.items()})

    def _now(self) -> dict[str, float]:
        family = list(kin(os.getpid()))
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {
            "web": sum(one.cpu_s() for one in self._web),
            "agents": sum(one.cpu_s() for one in self._agents),
            "postgres": sum(one.cpu_s for one in family if one.program == "postgres"),
            "redis": sum(one.cpu_s for one in family if one.program == "redis-server"),
            "load": sum(one.ru_utime + one.ru_stime for one in own),
            "all": _busy_s(),
        }


@dataclass(frozen=True)
class Relative:
    """A process below this one, and what it used."""

    pid: int
    parent: int
    program: str
    cpu_s: float


def kin(pid: int) -> Iterator[Relative]:
    """The children of a process, and theirs."""
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


def _busy_s() -> float:
    """How long our cores have worked since the machine started, for all processes."""
    lines = {line.split()[0]: line.split()[1:] for line in Path("/proc/stat").read_text().splitlines()}
    times = [list(map(int, lines[f"cpu{core}"])) for core in CPUS]
    return sum(sum(one[:3]) + sum(one[5:8]) for one in times) / TICKS_A_SECOND
