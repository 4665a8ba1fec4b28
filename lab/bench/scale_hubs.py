"""Hubs of several web processes, each hub with a database of its own on one PostgreSQL and one Redis."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import psycopg

from lab.bench import targets
from lab.bench.cores import CPUS
from lab.bench.targets import SERVE, Caller, Target
from lab.hub_storage import manage
from lab.processes import Program, free_port
from lab.servers import Servers, running_servers

Way = Literal["stay", "cross", "any"]
SERVER_CORES = CPUS[:-1] or CPUS


NewHome = Callable[[], dict[str, str]]


@contextmanager
def homes(kind: str, folder: Path) -> Iterator[NewHome]:
    """Makes homes, embedded or postgres: the environment of a hub with nothing in it but its tables."""
    numbers = itertools.count(1)
    with ExitStack() as stack:
        servers = stack.enter_context(running_servers(folder)) if kind == "postgres" else None

        def new() -> dict[str, str]:
            number = next(numbers)
            mine = folder / f"home-{number}"
            mine.mkdir(mode=0o755)
            env = targets.environment(mine) | (_own(servers, number) if servers else {})
            manage(env, "migrate", "--verbosity", "0")
            return env

        yield new


def _own(servers: Servers, number: int) -> dict[str, str]:
    """A new database of PostgreSQL, and one of Redis."""
    name = f"bench_{number}"
    with psycopg.connect(servers.postgres_url(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return servers.env(name, number)


@dataclass(frozen=True)
class Hubs:
    """The web processes of one hub. The agent of user k is connected to process k modulo their number."""

    processes: tuple[Target, ...]
    users: tuple[dict[str, str], ...]
    env: Mapping[str, str]

    @property
    def web(self) -> list[Program]:
        """The processes themselves."""
        return [one.server for one in self.processes]

    @property
    def agents(self) -> list[Program]:
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
    users: Sequence[dict[str, str]],
    *,
    online: int | None = None,
    command: Sequence[str] = SERVE,
) -> Iterator[Hubs]:
    """A hub of so many web processes in a home; of its users' agents the first `online` are connected.

    The processes have a core each, but the last core, which is the load's, and share where there are too few.
    """
    with ExitStack() as stack:
        yield Hubs(
            tuple(
                stack.enter_context(_process(index, users[:online][index::count], env, folder, command))
                for index in range(count)
            ),
            tuple(users),
            env,
        )


@contextmanager
def _process(
    index: int, held: Sequence[dict[str, str]], env: Mapping[str, str], folder: Path, command: Sequence[str]
) -> Iterator[Target]:
    port, name = free_port(), f"web-{index}"
    core = SERVER_CORES[index % len(SERVER_CORES)]
    own = {**env, "PORT": str(port)}
    with (
        targets.process(name, folder, own, core=core, command=command) as server,
        targets.agents(port, held, folder / f"{name}-{port}-agents.log") as connected,
    ):
        yield Target(name, port, server, (), connected)
