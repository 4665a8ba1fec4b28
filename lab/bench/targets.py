"""What is measured: the SDK's echo server, and the hub on each of its homes; each started with all it needs."""

import itertools
import json
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lab.bench.cores import LOAD_CORE, SERVER_CORE
from lab.hub_storage import hub_env, manage
from lab.processes import Program, free_port, printed, python, run
from lab.servers import running_servers

USERS = 32
QUESTION = "what is the status of the build on the main branch, and who broke it last? " * 2
SDK = "a2a-sdk"
HOMES = ("embedded", "postgres")
DIALECTS = tuple(f"{home}{version}" for home in HOMES for version in ("", " 1.0"))
V03_METHODS = {"SendMessage": "message/send", "SendStreamingMessage": "message/stream"}
COUNTER_DIGITS = 10
SERVE = ("manage.py", "serve")
ANSWERED = 'COMPLETED"'

_folders = itertools.count(1)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder for servers, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL may run as another user
        yield folder


@dataclass(frozen=True)
class Caller:
    """One user's way in: where they ask, the headers that say who they are, and the version of A2A in these.

    `model`: they ask for a chat completion of that model.
    """

    path: str
    headers: str
    version: str = ""
    model: str = ""


class Requests(Protocol):
    """Requests that differ by their number. `answered`: what is in the response to one that was answered."""

    @property
    def answered(self) -> str: ...

    def fill(self, number: int) -> bytes:
        """The bytes of the request of that number."""


@dataclass(frozen=True)
class Template:
    """A request but for its counter: every messageId is new, because the hub joins identical open questions.

    `answered`: what is in the response to a question that was answered.
    """

    head: str
    tail: str
    answered: str = ANSWERED

    def fill(self, number: int) -> bytes:
        """The bytes of the request of that number."""
        return f"{self.head}{number:0{COUNTER_DIGITS}}{self.tail}".encode()


@dataclass(frozen=True)
class Target:
    """A running server to measure. `channel_token`: of any user of a hub, to connect more agents."""

    name: str
    port: int
    server: Program
    callers: tuple[Caller, ...]
    agents: Program | None = None
    channel_token: str = ""

    def templates(self, method: str, kind: str = "say") -> list[Template]:
        """One request for each caller; `kind` is the first word of the question."""
        return [self._template(caller, method, kind) for caller in self.callers]

    def _template(self, caller: Caller, method: str, kind: str) -> Template:
        mark = secrets.token_hex(6)
        text = f"{kind}: {QUESTION}"
        message: dict[str, Any] = {"messageId": f"{mark}-", "role": "ROLE_USER", "parts": [{"text": text}]}
        if caller.version == "0.3":
            method = V03_METHODS[method]
            message |= {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": text}]}
        call: dict[str, Any] = {"jsonrpc": "2.0", "id": "1", "method": method, "params": {"message": message}}
        if caller.model:
            call = {"model": caller.model, "messages": [{"role": "user", "content": text}]}
            call |= {"stream": method == "SendStreamingMessage", "safety_identifier": f"{mark}-"}
        before, _, after = json.dumps(call).partition(f"{mark}-")
        head = (
            f"POST {caller.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{caller.headers}"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(before) + len(mark) + 1 + COUNTER_DIGITS + len(after)}\r\n\r\n"
        )
        answered = '"finish_reason":"stop"' if caller.model else ANSWERED
        return Template(f"{head}{before}{mark}-", after, answered)


Start = Callable[[Path], AbstractContextManager[Target]]


@contextmanager
def sdk(folder: Path, *, short: bool = False) -> Iterator[Target]:
    """The yardstick; `short`: it answers in one event instead of four."""
    port = free_port()
    command = python("-m", "lab.bench.sdk_server", str(port), *(["short"] if short else []))
    with Program(command, _log(folder, SDK), core=SERVER_CORE, is_ready=printed("ready http://")) as server:
        yield Target(SDK, port, server, (Caller("/", "A2A-Version: 1.0\r\n"),))


@contextmanager
def serving(home: str, folder: Path, **settings: str) -> Iterator[tuple[Program, dict[str, str]]]:
    """A hub with nothing in it, and the environment that points to its home; `settings` win over the bench's."""
    with ExitStack() as stack:
        mine = folder / f"{home}-{next(_folders)}"
        mine.mkdir(mode=0o755)
        env = environment(mine)
        if home == "postgres":
            env |= stack.enter_context(running_servers(mine)).env()
            manage(env, "migrate", "--verbosity", "0")
        server = stack.enter_context(process(home, folder, env | settings))
        yield server, env


def environment(folder: Path) -> dict[str, str]:
    """The environment of an embedded hub whose state lies in a folder; all is on but the callers' rate limit."""
    return {
        "DATA_DIR": str(folder / "data"),
        "HOST": "127.0.0.1",
        "PORT": str(free_port()),
        "PUBLIC_URL": "",
        "CALLER_RATE_PER_MINUTE": "0",
        "SOCKETS_PER_OWNER": "100000",
        "SESSIONS_PER_OWNER": "100000",
        "DEMO": "0",
        "DEV_LOGIN": "0",
        "DRAIN_S": "1",
        "LOG_LEVEL": "WARNING",
        "DATABASE_URL": "",
        "REDIS_URL": "",
        "DJANGO_SETTINGS_MODULE": "hub.settings",
    }


@contextmanager
def process(
    name: str, folder: Path, env: Mapping[str, str], *, core: int = SERVER_CORE, command: Sequence[str] = SERVE
) -> Iterator[Program]:
    """One web process, ready."""
    whole, is_ready = hub_env(env), printed("ready http://")
    with Program(python(*command), _log(folder, name), core=core, env=whole, is_ready=is_ready) as server:
        yield server


@contextmanager
def hub(home: str, folder: Path, *, users: int = USERS, **settings: str) -> Iterator[Target]:
    """A hub with nothing in it but the bench's users and their agents, which are online.

    `home`: embedded or postgres, asked in the hub's own dialect; with ` 1.0` behind it in that of A2A.
    """
    kind, _, version = home.partition(" ")
    with serving(kind, folder, **settings) as (server, env):
        seeded = seed(env, users)
        port = int(env["PORT"])
        with agents(port, seeded, _log(folder, f"{home}-agents")) as connected:
            callers = tuple(caller_of(user, version) for user in seeded)
            yield Target(home, port, server, callers, connected, seeded[0]["channel_token"])


def seed(env: Mapping[str, str], users: int = USERS) -> list[dict[str, str]]:
    """Users with an agent each in a home; of each what `lab.bench.seed` prints."""
    seeded: list[dict[str, str]] = json.loads(run(python("-m", "lab.bench.seed", str(users)), hub_env(env)))
    return seeded


def caller_of(user: Mapping[str, str], version: str = "") -> Caller:
    """The way in of one seeded user; `version`: of A2A, empty for the hub's own dialect."""
    spoken = f"A2A-Version: {version}\r\n" if version else ""
    path = f"/api/a2a/v1/agents/{user['asks']}"
    return Caller(path, f"Authorization: Bearer {user['session_token']}\r\n{spoken}", version)


@contextmanager
def agents(port: int, which: Sequence[dict[str, str]], log: Path) -> Iterator[Program]:
    """A process with these agents, all registered."""
    lines = "".join(json.dumps(one) + "\n" for one in which)
    command = python("-m", "lab.bench.agents", str(port))
    with Program(command, log, core=LOAD_CORE, stdin=lines, is_ready=printed("ready\n")) as running:
        yield running


def _log(folder: Path, name: str) -> Path:
    return folder / f"{name}-{next(_folders)}.log"
