"""The servers that are measured: the SDK's echo server, and hubs; each is started with all that it needs."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lab import hub_storage, in_django
from lab.bench.client import BenchCaller, Template, question_template
from lab.bench.command import HOMES
from lab.bench.meter import LOAD_CORE, SERVER_CORES
from lab.hub_process import SERVE, HubProcess
from lab.hub_storage import HubStorage, NewStorage
from lab.processes import Program, free_port, printed, python

USERS = 32
SDK = "a2a-sdk"
DIALECTS = tuple(f"{home}{version}" for home in HOMES for version in ("", " 1.0"))
AGENTS_PATH = "/api/a2a/v1/agents/"
SETTINGS = {
    "CALLER_RATE_PER_MINUTE": "0",
    "SOCKETS_PER_OWNER": "100000",
    "SESSIONS_PER_OWNER": "100000",
    "GATEWAY": "0",
    "DRAIN_S": "1",
    "LOG_LEVEL": "WARNING",
    "TEST_TIME_SCALE": "1",
}  # everything is on but the callers' rate limit; durations are those of the contract

User = Mapping[str, str]  # the fields that `lab.bench.seed` returns for a user
Way = Literal["stay", "cross", "any"]
_numbers = itertools.count(1)


@dataclass(frozen=True)
class BenchTarget:
    """A running server to measure. `channel_token`: of any user of a hub, to connect more agents."""

    name: str
    port: int
    server: Program
    callers: tuple[BenchCaller, ...] = ()
    agents: Program | None = None
    channel_token: str = ""

    def templates(self, method: str, kind: str = "say") -> list[Template]:
        """One request for each caller; `kind` is the first word of the question."""
        return [question_template(caller, method, kind) for caller in self.callers]


Start = Callable[[Path], AbstractContextManager[BenchTarget]]


@dataclass(frozen=True)
class Hub:
    """The web processes of one hub. The agent of user k is connected to process k modulo their number."""

    process: HubProcess
    users: tuple[User, ...]
    agents: tuple[Program, ...]

    @property
    def web(self) -> list[Program]:
        """The web processes."""
        return self.process.programs

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that points to the hub's storage."""
        return self.process.home.env

    @property
    def ports(self) -> list[int]:
        """The ports of the web processes."""
        return [int(url.rpartition(":")[2]) for url in self.process.urls]

    def asked(self, way: Way = "any", version: str = "") -> list[BenchTarget]:
        """The processes, each with the callers whose requests go there.

        `stay`: those whose agent it holds; `cross`: those whose agent the next one holds; `any`: all of them, as a
        proxy without sticky sessions does.
        """
        return [
            BenchTarget(
                name=f"web-{index}",
                port=port,
                server=self.web[index],
                callers=self._callers(index, way, version),
                agents=self.agents[index] if self.agents else None,
                channel_token=self.users[0]["channel_token"] if self.users else "",
            )
            for index, port in enumerate(self.ports)
        ]

    def _callers(self, index: int, way: Way, version: str) -> tuple[BenchCaller, ...]:
        count, shift = len(self.web), 1 if way == "cross" else 0
        holders = [(number + 1) % len(self.users) % count for number in range(len(self.users))]
        return tuple(
            caller_of(user, version)
            for user, holder in zip(self.users, holders, strict=True)
            if way == "any" or holder == (index + shift) % count
        )


@contextmanager
def baseline(name: str, kind: str, folder: Path) -> Iterator[BenchTarget]:
    """A server of `lab.bench.baselines`, on the first core of the hubs'."""
    port = free_port()
    command = python("-m", "lab.bench.baselines", kind, str(port))
    log, is_ready = folder / f"{kind}-{next(_numbers)}.log", printed("ready http://")
    with Program(command, log, core=SERVER_CORES[0], is_ready=is_ready) as server:
        yield BenchTarget(name, port, server)


@contextmanager
def sdk(folder: Path, *, short: bool = False) -> Iterator[BenchTarget]:
    """The echo server of the SDK; `short`: it answers in one event instead of four."""
    with baseline(SDK, "short" if short else "sdk", folder) as target:
        yield replace(target, callers=(BenchCaller("/", "A2A-Version: 1.0\r\n"),))


def storages(kind: str, folder: Path) -> AbstractContextManager[NewStorage]:
    """Makes storages of a kind, embedded or postgres."""
    return hub_storage.storages(folder, is_distributed=kind == "postgres")


@contextmanager
def running(
    storage: HubStorage,
    users: Sequence[User] = (),
    *,
    processes: int = 1,
    online: int | None = None,
    command: Sequence[str] = SERVE,
    **settings: Any,
) -> Iterator[Hub]:
    """A hub of so many web processes; of its users' agents, if it has users, the first `online` are connected.

    The processes have a core each, but the last core, which is the load's, and share where there are too few.
    """
    # The stores that cost an ask least, so that results of several releases compare.
    store = {"TASK_STORE": "redis" if storage.is_grown else "memory"}
    wanted: dict[str, Any] = SETTINGS | store | settings
    with ExitStack() as stack:
        process = stack.enter_context(
            HubProcess.start(storage, processes=processes, command=command, cores=SERVER_CORES, **wanted)
        )
        hub = Hub(process, tuple(users), ())
        connected = [
            stack.enter_context(agents(port, users[:online][index::processes], storage.folder.parent))
            for index, port in enumerate(hub.ports)
            if users
        ]
        yield replace(hub, agents=tuple(connected))


@contextmanager
def hub(home: str, folder: Path, *, users: int = USERS, **settings: Any) -> Iterator[BenchTarget]:
    """A hub of one process with nothing in it but the bench's users and their agents, which are online.

    `home`: embedded or postgres, asked in the hub's own dialect; with ` 1.0` behind it in that of A2A.
    """
    kind, _, version = home.partition(" ")
    with storages(kind, folder) as new_storage:
        storage = new_storage()
        with running(storage, seed(storage, users), **settings) as one:
            yield replace(one.asked("any", version)[0], name=home)


def seed(storage: HubStorage, users: int = USERS) -> list[User]:
    """Users with an agent each in a storage; of each what `lab.bench.seed` says."""
    seeded: list[User] = in_django.call(storage.env, "lab.bench.seed:seed", users)
    return seeded


def caller_of(user: User, version: str = "") -> BenchCaller:
    """The way one seeded user asks; `version`: of A2A, empty for the hub's own dialect."""
    spoken = f"A2A-Version: {version}\r\n" if version else ""
    path = f"{AGENTS_PATH}{user['asks']}"
    return BenchCaller(path, f"Authorization: Bearer {user['session_token']}\r\n{spoken}", version)


@contextmanager
def agents(port: int, which: Sequence[User], folder: Path) -> Iterator[Program]:
    """A process with these agents, all registered; its log is in the folder."""
    lines = "".join(json.dumps(dict(one)) + "\n" for one in which)
    command, log = python("-m", "lab.bench.agents", str(port)), folder / f"agents-{next(_numbers)}.log"
    with Program(command, log, core=LOAD_CORE, stdin=lines, is_ready=printed("ready\n")) as connected:
        yield connected


def idle_agents(target: BenchTarget, tokens: Sequence[str], folder: Path) -> AbstractContextManager[Program]:
    """A process with a new agent for each of these channel tokens; the load asks none of them."""
    return agents(target.port, [{"channel_token": token, "session_id": ""} for token in tokens], folder)
