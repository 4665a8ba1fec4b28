"""What the soak looks at: memory, descriptors, threads and tasks of each web process, and both databases."""

import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import redis

from lab.processes import Program
from lab.waiting import until

WITHIN_S = 30.0
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class Sample:
    """One look. `at_s`: since the beginning. All but the databases' counts is summed over the web processes."""

    at_s: float
    rss_kib: int
    fds: int
    threads: int
    tasks: int
    db_connections: int
    redis_clients: int
    redis_kib: int


COUNTED = ("rss_kib", "fds", "threads", "tasks", "db_connections", "redis_clients")


@dataclass(frozen=True)
class Watched:
    """A web process run by bench.soak_server, and the file to which it writes its counts."""

    server: Program
    counts: Path

    def look(self, *, collect: bool = False) -> dict[str, Any]:
        """What it says of its tasks and objects; asks it and waits for the answer. `collect`: garbage first."""
        before = len(self._lines())
        os.kill(self.server.pid, signal.SIGUSR2 if collect else signal.SIGUSR1)
        until(lambda: len(self._lines()) > before, "the process counted its tasks", within_s=WITHIN_S)
        told: dict[str, Any] = json.loads(self._lines()[-1])
        return told

    def _lines(self) -> list[str]:
        text = self.counts.read_text() if self.counts.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def fds(self) -> int:
        """Open descriptors: sockets, files."""
        return len(list(Path(f"/proc/{self.server.pid}/fd").iterdir()))

    def threads(self) -> int:
        """Threads of the operating system."""
        return len(list(Path(f"/proc/{self.server.pid}/task").iterdir()))


def sample(at_s: float, watched: Sequence[Watched], env: Mapping[str, str]) -> Sample:
    """Look at everything now; blocks for a moment."""
    tasks = sum(one.look()["tasks"] for one in watched)
    connections, clients, redis_kib = _databases(env) if env["DATABASE_URL"] else (0, 0, 0)
    return Sample(
        at_s=at_s,
        rss_kib=sum(one.server.rss_kib() for one in watched),
        fds=sum(one.fds() for one in watched),
        threads=sum(one.threads() for one in watched),
        tasks=tasks,
        db_connections=connections,
        redis_clients=clients,
        redis_kib=redis_kib,
    )


def grown(samples: Sequence[Sample], what: str, warm_s: float) -> tuple[float, float]:
    """The median of the first tenth after the warm-up, and of the last tenth."""
    values = [float(getattr(one, what)) for one in samples if one.at_s >= warm_s]
    if not values:
        raise ValueError("no sample after the warm-up")
    tenth = max(1, len(values) // 10)
    return median(values[:tenth]), median(values[-tenth:])


def _databases(env: Mapping[str, str]) -> tuple[int, int, int]:
    with psycopg.connect(env["DATABASE_URL"]) as connection:
        row = connection.execute(CONNECTIONS).fetchone()
    with redis.Redis.from_url(env["REDIS_URL"]) as client:
        told = {**client.info("clients"), **client.info("memory")}
    return int(row[0] if row else 0), int(told["connected_clients"]) - 1, int(told["used_memory"]) // 1024
