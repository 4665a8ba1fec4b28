"""Hubs of several web processes, each hub with a database of its own on one PostgreSQL and one Redis."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psycopg

from bench import targets
from bench.children import CPUS, Child, free_port, python
from bench.databases import databases
from bench.targets import SERVE, USERS, Caller, Target

Way = Literal["stay", "cross", "any"]
SERVER_CORES = CPUS[:-1] or CPUS


@dataclass
class Servers:
    """A running PostgreSQL and Redis; each home on them gets a database and a Redis number."""

    folder: Path
    urls: Mapping[str, str]
    _used: int = 0

    def new_home(self, template: str = "") -> dict[str, str]:
        """The environment of a hub with nothing in it, or with what the database `template` holds."""
        self._used += 1
        name, mine = f"bench_{self._used}", self.folder / f"home-{self._used}"
        mine.mkdir(mode=0o755)
        with psycopg.connect(self.urls["DATABASE_URL"], autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        env = targets.environment(mine) | {
            "DATABASE_URL": self.urls["DATABASE_URL"].rpartition("/")[0] + f"/{name}",
            "REDIS_URL": self.urls["REDIS_URL"].rpartition("/")[0] + f"/{self._used}",
        }
        if not template:
            targets.run(python("manage.py", "migrate", "--verbosity", "0"), env)
        return env


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Start both."""
    with databases(folder) as urls:
        yield Servers(folder, urls)


@dataclass(frozen=True)
class Hubs:
    """The web processes of one hub. The agent of user k is connected to process k modulo their number."""

    processes: tuple[Target, ...]
    users: tuple[dict[str, str], ...]
    env: Mapping[str, str]

    @property
    def web(self) -> list[Child]:
        """The processes themselves."""
        return [one.server for one in self.processes]

    @property
    def agents(self) -> list[Child]:
        """The programs that hold the agents' sockets."""
        return [one.agents for one in self.processes if one.agents]

    def asked(self, way: Way) -> list[Target]:
        """The processes, each with the callers that this way sends there.

        `stay`: those whose agent it holds; `cross`: those whose agent the next one holds; `any`: all of them, as a
        proxy without sticky sessions does.
        """
        return [replace(one, callers=self._callers(index, way)) for index, one in enumerate(self.processes)]

    def _callers(self, index: int, way: Way) -> tuple[Caller, ...]:
        count, shift = len(self.processes), 1 if way == "cross" else 0
        asked = [(number + 1) % len(self.users) % count for number in range(len(self.users))]
        return tuple(
            targets.caller_of(user)
            for user, holder in zip(self.users, asked, strict=True)
            if way == "any" or holder == (index + shift) % count
        )


@contextmanager
def hubs(
    count: int,
    env: Mapping[str, str],
    folder: Path,
    *,
    users: int = USERS,
    online: int | None = None,
    command: Sequence[str] = SERVE,
) -> Iterator[Hubs]:
    """A hub of so many web processes in a home; its users seeded, the first `online` of their agents connected.

    The processes have a core each, but the last core, which is the load's, and share where there are too few.
    """
    with ExitStack() as stack:
        seeded = json.loads(targets.run(python("-m", "bench.seed", str(users)), env))
        yield Hubs(
            tuple(
                stack.enter_context(_process(index, seeded[:online][index::count], env, folder, command))
                for index in range(count)
            ),
            tuple(seeded),
            env,
        )


@contextmanager
def _process(
    index: int, held: list[dict[str, str]], env: Mapping[str, str], folder: Path, command: Sequence[str]
) -> Iterator[Target]:
    port, name = free_port(), f"web-{index}"
    core = SERVER_CORES[index % len(SERVER_CORES)]
    own = {**env, "PORT": str(port)}
    with (
        targets.process(name, folder, own, core=core, command=command) as server,
        targets.agents(port, held, folder / f"{name}-{port}-agents.log") as connected,
    ):
        yield Target(name, port, server, (), connected)
