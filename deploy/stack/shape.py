"""The programs of the stack, and the order in which they start and stop."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deploy.stack.proxy import find_proxy, proxy
from deploy.stack.servers import postgres, redis
from lab.processes import Program, ProgramError, printed, python, run

COMMANDS_NEED = ("DATA_DIR", "DATABASE_URL", "REDIS_URL")
CELERY = python("-m", "celery", "-q", "-A", "hub")


@dataclass
class Stack:
    """All programs of the stack. `env`: the environment of the hub's programs; `port`: the port for browsers."""

    folder: Path
    env: dict[str, str]
    host: str
    port: int
    servers: list[Program] = field(default_factory=list)
    jobs: list[Program] = field(default_factory=list)
    webs: list[Program] = field(default_factory=list)
    front: list[Program] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)

    @property
    def children(self) -> list[Program]:
        """All programs, in the order in which they start."""
        return [*self.servers, *self.jobs, *self.webs, *self.front]

    def start(self) -> None:
        """Start the programs one after the other.

        Raises:
            ProgramError: a program did not start; the programs before it run.
        """
        self._start_servers()
        self._migrate()
        program = find_proxy()
        first = self.port + 1 if program else self.port
        addresses = [f"{self.host}:{first}", f"{self.host}:{first + 1}"]
        self.urls = [f"http://{address}" for address in addresses]
        self.env["PUBLIC_URL"] = os.environ.get("PUBLIC_URL") or f"http://{self.host}:{self.port}"
        if program:
            self.env["TRUSTED_PROXIES"] = self.host
        for child in self._jobs():
            self._start(child, self.jobs)
        for number, url in enumerate(self.urls, start=1):
            self._start(self._web(number, url), self.webs, url)
        if program:
            front = proxy(program, self.folder, f"{self.host}:{self.port}", addresses)
            self._start(front, self.front, self.env["PUBLIC_URL"])
        else:
            tell(f"no Caddy or nginx is installed: ask either process, {self.urls[0]} or {self.urls[1]}")

    def stop(self) -> None:
        """Stop all programs in the order that loses no data: open questions end first, the database is last."""
        for step in [self.webs, self.front, self.jobs[::-1], self.servers]:
            running = [child for child in step if not child.has_ended]
            for child in running:
                child.ask_to_stop()
            for child in running:
                tell(f"{child.name} left" if child.wait() else f"{child.name} did not leave in time: killed")

    def kill(self) -> None:
        """Kill all programs at once."""
        for child in self.children:
            child.kill()

    def demo_lines(self) -> str:
        """The lines of the first process about its demo agent: a token and a curl."""
        return self.webs[0].output.partition(f"ready {self.urls[0]}\n")[2].rstrip()

    def command_line(self) -> str:
        """The shell command that runs a command of the hub on this stack's database."""
        told = " ".join(f"{name}={shlex.quote(self.env[name])}" for name in COMMANDS_NEED)
        return f"{told} {shlex.quote(sys.executable)} manage.py help"

    def _start_servers(self) -> None:
        if self.env.get("DATABASE_URL") and self.env.get("REDIS_URL"):
            tell("PostgreSQL and Redis are those of DATABASE_URL and REDIS_URL")
            return
        if self.env.get("DATABASE_URL") or self.env.get("REDIS_URL"):
            raise ProgramError("DATABASE_URL and REDIS_URL go together: set both, or neither")
        database, messages = postgres(self.folder), redis(self.folder)
        self.env |= {"DATABASE_URL": database.url(), "REDIS_URL": messages.url()}
        self._start(database.program, self.servers)
        self._start(messages.program, self.servers)

    def _migrate(self) -> None:
        tell("migrating the database")
        run(python("manage.py", "migrate", "--verbosity", "0"), self.env)

    def _web(self, number: int, url: str) -> Program:
        port, is_first = url.rpartition(":")[2], number == 1
        env = {**self.env, "HOST": self.host, "PORT": port, "DEMO": self.env["DEMO"] if is_first else "0"}
        return self._program(f"web {number}", python("manage.py", "serve"), f"ready {url}", env)

    def _jobs(self) -> Iterator[Program]:
        worker = [*CELERY, "worker", "--concurrency", "3", "-l", "INFO", "-n", f"stack-{os.getpid()}@%h"]
        yield self._program("worker", worker, " ready.", self.env)
        schedule = str(self.folder / "beat-schedule")
        yield self._program("beat", [*CELERY, "beat", "-s", schedule, "-l", "INFO"], "Starting", self.env)

    def _program(self, name: str, command: list[str], ready: str, env: Mapping[str, str]) -> Program:
        log = self.folder / "logs" / f"{name.replace(' ', '-')}.log"
        return Program(command, log, name=name, env=env, is_ready=printed(ready))

    def _start(self, child: Program, group: list[Program], at: str = "") -> None:
        group.append(child)
        child.start()
        tell(f"{child.name} runs{f' on {at}' if at else ''}")


def tell(line: str) -> None:
    """Print a line of progress, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
