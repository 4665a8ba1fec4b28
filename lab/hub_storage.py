"""The storage of a hub under test: a folder with SQLite, or PostgreSQL and Redis."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from lab import ROOT
from lab.forked import run_forked
from lab.processes import ProgramError
from lab.servers import REDIS_DATABASES, Servers, running_servers

TEMPLATE = "hub_template"
SQLITE_FILE = "hub.sqlite3"
COMMAND_WITHIN_S = 120
OURS = {"DATABASE_URL", "REDIS_URL", "DATA_DIR", "PUBLIC_URL", "HOST", "PORT", "DEMO", "DEV_LOGIN"}
OURS |= {"GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET", "GITHUB_URL", "GITHUB_API_URL", "SIGNUP", "APP_ORIGINS"}
OURS |= {"TASK_STORE", "GATEWAY", "AGNT", "A2A_SIGNING_KEY", "STRIPE_API_KEY"}


@dataclass(frozen=True)
class HubStorage:
    """The storage of one hub, as the environment that points there; a restarted hub finds it again."""

    name: str
    env: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return Path(self.env["DATA_DIR"])

    @property
    def is_grown(self) -> bool:
        return "DATABASE_URL" in self.env


MakeStorage = Callable[[str], HubStorage]


def embedded_storage(folder: Path) -> HubStorage:
    """SQLite and everything in process; the folder is all there is."""
    return HubStorage("embedded", {"DATA_DIR": str(folder)})


@dataclass
class EmbeddedStorages:
    """Makes embedded storages; each gets a copy of the migrated database in the folder `template`."""

    template: Path

    @staticmethod
    def make_template(folder: Path) -> None:
        """A DATA_DIR whose database has all tables."""
        manage({"DATA_DIR": str(folder)}, "migrate", "--verbosity", "0")

    def new(self, folder: Path) -> HubStorage:
        folder.mkdir(parents=True, mode=0o700)
        shutil.copy2(self.template / SQLITE_FILE, folder)
        return embedded_storage(folder)


@dataclass
class DistributedStorages:
    """Makes storages on shared servers; each gets a copy of the database TEMPLATE, and a Redis number."""

    servers: Servers
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, REDIS_DATABASES)))

    @staticmethod
    def make_template(cluster: Path) -> None:
        """A data folder of PostgreSQL whose database TEMPLATE has all tables."""
        with running_servers(is_durable=False, keep_as=cluster) as servers:
            DistributedStorages(servers).create_template()

    def create_template(self) -> None:
        """Make the database TEMPLATE, for servers that were not started from a data folder with it."""
        _run(self.servers, f"CREATE DATABASE {TEMPLATE}")
        with TemporaryDirectory() as folder:
            manage({"DATA_DIR": folder} | self.servers.env(TEMPLATE), "migrate", "--verbosity", "0")

    def new(self, folder: Path) -> HubStorage:
        database = f"hub_{secrets.token_hex(6)}"
        self.create_database(database)
        return HubStorage("grown", {"DATA_DIR": str(folder), **self.servers.env(database, next(self._numbers))})

    def create_database(self, name: str) -> None:
        """A new database with all tables."""
        _run(self.servers, f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")


NewStorage = Callable[[], HubStorage]


@contextmanager
def storages(folder: Path, *, is_distributed: bool) -> Iterator[NewStorage]:
    """Makes storages below a folder, each with all tables and nothing else; PostgreSQL is durable."""
    with ExitStack() as stack:
        maker: EmbeddedStorages | DistributedStorages
        if is_distributed:
            maker = DistributedStorages(stack.enter_context(running_servers()))
            maker.create_template()
        else:
            maker = EmbeddedStorages(folder / "template")
            if not maker.template.exists():
                maker.make_template(maker.template)

        def new_storage() -> HubStorage:
            return maker.new(folder / f"storage-{secrets.token_hex(4)}" / "data")

        yield new_storage


def _run(servers: Servers, statement: str) -> None:
    with psycopg.connect(servers.postgres_url(), autocommit=True) as connection:
        connection.execute(statement)


def hub_env(extra: Mapping[str, str]) -> dict[str, str]:
    """Our own environment without any setting of a hub, plus these."""
    return {name: value for name, value in os.environ.items() if name not in OURS} | dict(extra)


def manage(env: Mapping[str, str], *arguments: str, at: Path = ROOT, within_s: float = COMMAND_WITHIN_S) -> str:
    """Run one management command on the storage of a hub; its standard output. `at`: another checkout's.

    Raises:
        ProgramError: the command failed; the text holds its whole output.
    """
    done = run_command(env, *arguments, at=at, within_s=within_s)
    if done.returncode:
        raise ProgramError(f"manage.py {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def run_command(
    env: Mapping[str, str], *arguments: str, at: Path = ROOT, within_s: float = COMMAND_WITHIN_S
) -> subprocess.CompletedProcess[str]:
    """Run one management command on the storage of a hub, whether the command fails or not."""
    return run_forked(["manage.py", *arguments], hub_env(env), folder=at, within_s=within_s)
