"""The two homes of a hub under test: a folder with SQLite, or PostgreSQL and Redis."""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.servers import REDIS_DATABASES, Servers

ROOT = Path(__file__).parents[1]
TEMPLATE = "hub_template"
SQLITE_FILE = "hub.sqlite3"
OURS = {"DATABASE_URL", "REDIS_URL", "DATA_DIR", "PUBLIC_URL", "HOST", "PORT", "DEMO", "DEV_LOGIN"}
OURS |= {"GITHUB_CLIENT_ID", "GITHUB_CLIENT_SECRET", "GITHUB_URL", "GITHUB_API_URL", "SIGNUP", "APP_ORIGINS"}
OURS |= {"TASK_STORE"}


@dataclass(frozen=True)
class Home:
    """Where one hub keeps its state, as the environment that points there; a restarted hub finds it again."""

    name: str
    env: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return Path(self.env["DATA_DIR"])

    @property
    def is_grown(self) -> bool:
        return "DATABASE_URL" in self.env


MakeHome = Callable[[str], Home]


def embedded_home(folder: Path) -> Home:
    """SQLite and everything in process; the folder is all there is."""
    return Home("embedded", {"DATA_DIR": str(folder)})


@dataclass
class EmbeddedHomes:
    """Makes embedded homes; each gets a copy of one database that was migrated once."""

    template: Path

    def new(self, folder: Path) -> Home:
        if not self.template.exists():
            manage({"DATA_DIR": str(self.template)}, "migrate", "--verbosity", "0")
        folder.mkdir(parents=True, mode=0o700)
        shutil.copy2(self.template / SQLITE_FILE, folder)
        return embedded_home(folder)


@dataclass
class GrownHomes:
    """Makes homes on shared servers; each gets a database, copied from one migrated once, and a Redis number."""

    servers: Servers
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, REDIS_DATABASES)))

    def new(self, folder: Path) -> Home:
        database = f"hub_{secrets.token_hex(6)}"
        self.create_database(database, folder)
        urls = {
            "DATABASE_URL": self.servers.postgres_url(database),
            "REDIS_URL": self.servers.redis_url(next(self._numbers)),
        }
        return Home("grown", {"DATA_DIR": str(folder), **urls})

    def create_database(self, name: str, folder: Path) -> None:
        """A new database with all tables. `folder`: a DATA_DIR that the first migration may use."""
        if not self._found("SELECT 1 FROM pg_database WHERE datname = %s", TEMPLATE):
            self._make_template(folder)
        self._found(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")

    def _make_template(self, folder: Path) -> None:
        self._found("CREATE DATABASE half_made")
        urls = {"DATABASE_URL": self.servers.postgres_url("half_made"), "REDIS_URL": self.servers.redis_url(0)}
        manage({"DATA_DIR": str(folder)} | urls, "migrate", "--verbosity", "0")
        self._found(f"ALTER DATABASE half_made RENAME TO {TEMPLATE}")

    def _found(self, statement: str, *values: str) -> bool:
        with psycopg.connect(self.servers.postgres_url("postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.description is not None and cursor.fetchone() is not None


def hub_env(extra: Mapping[str, str]) -> dict[str, str]:
    """Our own environment without any setting of a hub, plus these."""
    return {name: value for name, value in os.environ.items() if name not in OURS} | dict(extra)


def manage(env: Mapping[str, str], *arguments: str, at: Path = ROOT) -> str:
    """Run one management command against a home; its standard output. `at`: another checkout's."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=hub_env(env),
        cwd=at,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"manage.py {arguments[0]} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout
